"""What a reader finds on the page of a report, and how the page looks."""

import json
import platform
import re
import shutil
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import pytest
from tests.support.recipes import BRIEF, as_words
from tests.support.verbs import run_recipe

from micronet_lm import __version__
from micronet_lm.cli.main import main
from micronet_lm.corpus import Corpus
from micronet_lm.machine import processor_name
from micronet_lm.report.document import Document, Picture, Section, Table, to_html
from micronet_lm.report.palette import BETTER, COLOURS, WORSE
from micronet_lm.report.samples import NEXT, WORDS, suggest_words, write_samples
from micronet_lm.report.stack import PLAIN, Layer, stack_svg
from micronet_lm.report.trigram import Trigram

_END = ["searched", "quantized", "packed", "account", "report"]
LATER = {
    "account": ["report"],
    "pruned": _END,
    "corpus": ["teacher", "labels", "student", "sensitivity", "pruned", *_END],
}
"""The records of what comes after a stage, by the names of the folders."""


def page_of(folder: Path) -> str:
    return (folder / "report" / "report.html").read_text()


def section(page: str, title: str) -> str:
    """The part of a page below one heading."""
    found = re.search(rf"<h2>{title}</h2>(.*?)</section>", page, re.DOTALL)
    assert found, title
    return found[1]


def empty_headings(page: str) -> list[str]:
    return re.findall(r"<h2>([^<]*)</h2></section>", page)


def test_samples_stand_beside_the_true_continuation(finished: Path) -> None:
    corpus = Corpus.open(finished / "corpus")
    samples = write_samples(finished / "packed" / "model.safetensors", corpus)
    text = " ".join(corpus.decode(corpus.split("test")).split())
    part = section(page_of(finished), "Samples")
    for sample in samples:
        assert f"{sample.beginning} {sample.true}" in text
        assert len(sample.true.split()) > WORDS // 2
        for cell in (f"{sample.beginning} …", f"… {sample.true}", f"… {sample.written}"):
            assert f">{cell}</td>" in part


def test_suggestions_stand_beside_the_true_word(finished: Path) -> None:
    corpus = Corpus.open(finished / "corpus")
    found = suggest_words(finished / "packed" / "model.safetensors", corpus)
    assert found is not None
    assert len(found.shown) > 3
    text = " ".join(corpus.decode(corpus.split("test")).split())
    part = section(page_of(finished), "Samples")
    for own in found.shown:
        assert f"{own.before} {own.true}" in text
        assert [word.probability for word in own.words] == sorted(
            (word.probability for word in own.words), reverse=True
        )
        words = " · ".join(f"{word.word} {word.probability:.0%}" for word in own.words)
        assert f"<td class=text>{own.true}</td><td class=text>{words}</td>" in part
    assert list(found.hits) == sorted(found.hits)
    assert 0 < found.hits[-1] <= found.asked
    assert len(found.hits) == NEXT


def test_the_share_of_unknown_words_of_each_split(finished: Path) -> None:
    manifest = Corpus.open(finished / "corpus").manifest
    part = section(page_of(finished), "Text")
    for split in ("train", "valid", "test"):
        share = manifest.unknown[split] / manifest.tokens[split]
        assert re.search(rf"<td>{split}</td>.*?<td>{share:.2%}</td>", part)


def test_a_trigram_stands_beside_the_model(finished: Path) -> None:
    corpus = Corpus.open(finished / "corpus")
    trigram = Trigram(corpus.split("train"), corpus.manifest.words)
    own = [f"{trigram.perplexity(corpus.split(split)):,.2f}" for split in ("valid", "test")]
    last = json.loads((finished / "account" / "account.json").read_text())["stages"][-1]
    model = [f"{last[f'{split}_perplexity']:,.2f}" for split in ("validation", "test")]
    cells = re.findall(r"<td>([^<]*)</td>", section(page_of(finished), "Baseline"))
    assert cells == ["trigram", *own, "the packed model", *model]


def test_speed_names_engine_and_processor(finished: Path) -> None:
    part = section(page_of(finished), "Speed")
    assert re.search(r"<b>[\d,]+</b><span>words read per second</span>", part)
    assert re.search(r"<b>[\d.]+ ms</b><span>per suggestion", part)
    assert re.search(r"the engine (native \(\w+\)|numpy) on one thread", part)
    assert processor_name() in part


def test_date_versions_and_command(finished: Path) -> None:
    page = page_of(finished)
    head = page[: page.index("</header>")]
    year = datetime.now(UTC).strftime("%Y-")
    assert re.search(rf"{year}\d\d-\d\d, micronet-lm {re.escape(__version__)}: ", head)
    assert "micronet run whole.yaml --out DIR" in head
    part = section(page, "Environment")
    for fact in (__version__, platform.python_version(), metadata.version("numpy")):
        assert f">{fact}</td>" in part
    assert metadata.version("torch") in part
    assert processor_name() in part


def test_changes_that_may_be_noise_are_neutral() -> None:
    def svg(before: float, after: float, clear: bool | None) -> str:
        layers = [
            Layer(label=label, kind="core", values={"validation_perplexity": value}, clear=clear)
            for label, value in (("A", before), ("B", after))
        ]
        return stack_svg([("", layers)])

    def colour(svg: str, number: str) -> str:
        found = re.search(rf'fill="([^"]*)"[^>]*>{number}</text>', svg)
        assert found
        return found[1]

    assert colour(svg(40, 39, clear=False), "39.00") == PLAIN
    assert "≈" in svg(40, 39, clear=False)
    assert colour(svg(40, 39.9, clear=True), "39.90") == BETTER
    assert "▼" in svg(40, 39.9, clear=True)
    assert colour(svg(40, 40.1, clear=True), "40.10") == WORSE
    # Where nothing was measured, one percent is the limit.
    assert colour(svg(40, 40.3, clear=None), "40.30") == PLAIN
    assert colour(svg(40, 40.5, clear=None), "40.50") == WORSE


def test_the_rule_is_stated_with_its_numbers(finished: Path) -> None:
    part = section(page_of(finished), "Pipeline")
    assert "2 standard errors of the paired difference" in part
    rows = re.findall(r"<tr><td>([\w-]+)</td>.*?>(better|worse|within noise)<", part)
    assert [name for name, _ in rows] == ["prune", "search-cache", "quantize"]
    arrows = {"better": "▼", "worse": "▲", "within noise": "≈"}
    drawn = part[: part.index("<figcaption>")]
    for _, verdict in rows:
        assert arrows[verdict] in drawn


def test_drawings_take_the_colours_of_the_page(finished: Path) -> None:
    """No drawing has a colour of its own, so that all of them suit a dark page."""
    page = page_of(finished)
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) >= 5
    for drawing in drawings:
        assert re.findall(r"#[0-9a-f]{6}\b", drawing) == []
        assert "var(--ink)" in drawing
    files = list((finished / "report" / "figures").glob("*.svg"))
    assert all("var(" not in file.read_text() for file in files)  # for viewers that know none


def test_light_dark_and_print() -> None:
    picture = Picture(name="p", caption="c", svg='<svg fill="#1c2430"></svg>')
    page = to_html(
        Document(title="t", subtitle="s", sections=[Section(title="S", blocks=[picture])])
    )
    assert 'fill="var(--ink)"' in page
    light, dark = COLOURS["ink"]
    assert f"--ink: {light};" in page
    dark_rules = page[page.index("@media screen and (prefers-color-scheme: dark)") :]
    assert f"--ink: {dark};" in dark_rules[: dark_rules.index("\n")]
    assert "@media print" in page


@pytest.mark.parametrize("name", ["ink", "soft", "better", "worse", "accent"])
@pytest.mark.parametrize("which", [0, 1])
def test_text_is_readable_on_its_page(name: str, which: int) -> None:
    """At least 4.5:1, as WCAG asks of text."""

    def light(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    one, two = sorted((light(COLOURS[name][which]), light(COLOURS["paper"][which])))
    assert (two + 0.05) / (one + 0.05) >= 4.5


def test_columns_of_text_are_marked() -> None:
    table = Table(head=["a", "b", "n"], rows=[["x", "y", "1"]], texts=2, wraps=True)
    page = to_html(Document(title="", subtitle="", sections=[Section(title="S", blocks=[table])]))
    assert "<table class=wraps>" in page
    assert "<tr><td>x</td><td class=text>y</td><td>1</td></tr>" in page


def test_a_pipeline_without_any_compression(recipe_file: Path, tmp_path: Path) -> None:
    """One model and nothing to compare: no empty heading, no rule about changes."""
    recipe = recipe_file.with_name("teacher.yaml")
    page = page_of(run_recipe(recipe, tmp_path / "plain"))
    assert empty_headings(page) == []
    for title in ("Sensitivity", "Cache search"):
        assert f"<h2>{title}</h2>" not in page
    assert "noise" not in section(page, "Pipeline").split("<figcaption>")[1]
    assert "≈" not in section(page, "Pipeline")


def test_a_pipeline_that_was_interrupted(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is complete is reported, whatever stage it stopped in."""
    for stage, folder in (("account", "account"), ("prune", "pruned"), ("corpus", "corpus")):
        root = tmp_path / stage
        shutil.copytree(finished, root, symlinks=True)
        for later in LATER[folder]:
            (root / "stages" / f"{later}.json").unlink()
        record = root / "stages" / f"{folder}.json"
        begun = json.loads(record.read_text())
        record.write_text(json.dumps({**begun, "complete": False, "result": {}}))
        assert main(["report", str(root)]) == 0
        page = page_of(root)
        assert "an unfinished pipeline" in page
        assert empty_headings(page) == []
        assert f"<td>{stage}</td><td class=text>begun</td>" in section(page, "Stages")
        assert ("<h2>Text</h2>" in page) == (stage != "corpus")
    capsys.readouterr()
    empty = tmp_path / "empty"
    (empty / "stages").mkdir(parents=True)
    assert main(["report", str(empty)]) == 1
    assert "has no stage yet" in capsys.readouterr().err


def test_a_stage_that_began_anew_leaves_no_mixture(finished: Path, tmp_path: Path) -> None:
    """The account of models that are being made again is not shown beside the new ones."""
    root = tmp_path / "changed"
    shutil.copytree(finished, root, symlinks=True)
    file = root / "stages" / "student.json"
    begun = json.loads(file.read_text())
    file.write_text(json.dumps({**begun, "fingerprint": "0" * 64, "complete": False, "result": {}}))
    assert main(["report", str(root)]) == 0
    assert "an unfinished pipeline" in page_of(root)


@pytest.mark.needs_torch
def test_the_report_of_a_run_without_any_section(corpus: Corpus, tmp_path: Path) -> None:
    words = as_words({**BRIEF, "train.steps": 2})
    out = str(tmp_path / "run")
    assert main(["train", "demo", "--out", out, "--corpus", str(corpus.path), *words]) == 0
    assert main(["report", out]) == 0
    page = page_of(tmp_path / "run")
    assert empty_headings(page) == []
    assert "<h2>Baseline</h2>" in page
