"""The paper's tables: what is counted equals what is printed, and every recipe is there."""

import json
import re
from pathlib import Path

import pytest
from tests.support.recipes import TINY, as_words

from micronet_lm.cli.main import main
from micronet_lm.config import load_recipe, preset_names
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError
from micronet_lm.pipeline import Workspace, stages_of, take_apart
from micronet_lm.report import tables
from micronet_lm.report.paper_counts import paper_count
from micronet_lm.report.quantities import shown
from micronet_lm.report.reproduction import Reproduction
from micronet_lm.report.tables import CACHE_FIGURES, SCALES, Column, Row, load_table, table_names

TABLES = ("micronet", "compression", "sota", "context", "cache", "hebbian", "cache-search")


def number(text: str) -> tuple[float, float]:
    """A printed number and half of its last digit."""
    digits = text.removesuffix("M")
    unit = 1e6 if text.endswith("M") else 1.0
    places = len(digits.partition(".")[2])
    return float(digits) * unit, 0.5 * 10**-places * unit


def computed() -> list[tuple[str, Row, Column]]:
    return [
        (name, row, column)
        for name in table_names()
        for row in load_table(name).rows
        for column in load_table(name).columns
        if column.computed and column.key in row.printed and row.recipe(column, "paper")
    ]


def test_all_tables_are_there() -> None:
    assert set(table_names()) == {*TABLES, "pipeline", "claims"}


def test_every_table_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    told = capsys.readouterr().out
    assert all(name in told for name in table_names())
    assert main(["reproduce", "no-such-table"]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in (*table_names(), *CACHE_FIGURES))


def test_mistakes_in_the_tables_data_are_refused() -> None:
    columns = (Column(key="test", title="test", measured="quantize.test_perplexity"),)
    with pytest.raises(ConfigError, match="row 'x' has the unknown key 'recipies'"):
        tables._row({"label": "x", "printed": {}, "recipies": []}, columns)


def test_shares_are_shown_as_such() -> None:
    assert shown("sparsity", 0.358) == "0.358"
    assert shown("count", 3.0) == "3"


@pytest.mark.parametrize("cell", computed(), ids=lambda c: f"{c[0]}, {c[1].label}, {c[2].key}")
def test_what_is_counted_is_what_the_paper_prints(cell: tuple[str, Row, Column]) -> None:
    _, row, column = cell
    preset = row.recipe(column, "paper")
    assert preset is not None
    assert column.computed is not None
    count = paper_count(preset, column.computed, row.stage)
    value, half = number(row.printed[column.key])
    if "0.477" in row.label or (row.label.endswith("(the best)") and column.key == "operations"):
        # Not consistent in print; `test_paper_pinned` has what is counted instead.
        assert value * 0.9 < count < value
    elif (row.label, column.key) == ("Ours, base", "rest"):
        # 5.06 M at the context of 257 that the rest of the row has; printed is that at 97.
        assert round(count / 1e6, 2) == 5.06
    elif (row.label, column.key) == ("cache of 2000 (demo 1000)", "operations"):
        assert (row.printed["operations"], round(count)) == (
            "18.4M",
            18_455_387,
        )  # cut, not rounded
    else:
        assert abs(count - value) <= half * 1.0001, (count, value)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", table_names())
def test_every_recipe_of_a_table_has_the_stages_that_it_asks_for(
    name: str, scale: str, tmp_path: Path
) -> None:
    made = Reproduction(load_table(name), scale, Workspace(tmp_path, shared=True))
    assert set(made.recipes()) <= set(preset_names())
    assert made.recipes()
    targets = made.targets()
    assert targets
    # Rows share what they have in common.
    if name == "compression":
        students = [stages_of(take_apart(preset))["student"] for preset in made.recipes()]
        assert len({student.fingerprint for student in students}) == 3 + 3  # C, with and without


def test_sweeps_name_every_printed_row() -> None:
    assert len(load_table("compression").rows) == 14
    assert len(load_table("context").rows) == 6
    assert len(load_table("cache-search").rows) == 8
    labels = [row.label for row in load_table("context").rows]
    for label, row in zip(labels, load_table("context").rows, strict=True):
        preset = row.recipe(load_table("context").columns[0], "paper")
        assert preset is not None
        assert load_recipe(preset).model.context == int(label.removeprefix("C = "))


def test_a_dry_run_counts_and_trains_nothing(
    tmp_path: Path,
    corpus: Corpus,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ["reproduce", "hebbian", "--scale", "demo", "--out", str(tmp_path / "out"), "--dry-run"]
    given = ["--corpus", str(corpus.path), *tiny(corpus)]
    assert main([*words, *given, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "out").exists()
    assert [row["stage"] for row in report["plan"]].count("student") == 4
    assert all(row["seconds"] is not None for row in report["plan"])
    cells = report["rows"][2]["cells"]
    known: dict[str, object] = {"printed": "39.5", "computed": None, "measured": None, "seeds": []}
    assert cells["none"] == known


def test_a_table_is_trained_side_by_side_and_once(
    tmp_path: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["reproduce", "hebbian", "--scale", "demo", "--out", str(out), "--jobs", "2"]
    given = ["--corpus", str(corpus.path), *tiny(corpus)]
    assert main([*words, *given, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    ours = [
        row["cells"][key]["measured"] for row in report["rows"][2:] for key in ("none", "cache")
    ]
    assert len(set(ours)) == 4
    assert all(1 < value < 300 for value in ours)
    runs = sorted(out.glob("student-*"))
    assert len(runs) == 4
    before = {run: (run / "last.safetensors").stat().st_mtime_ns for run in runs}
    # Again, and another table that needs one of them: nothing is trained twice.
    assert main([*words, *given]) == 0
    shown = capsys.readouterr()
    assert "0 stages to run" in shown.err
    assert "39.5" in shown.out
    assert re.search(r"Ours, no Hebbian .*33\.7", shown.out)
    assert "| Ours, no Hebbian | 39.5 |" in (out / "tables" / "hebbian.md").read_text()
    assert {run: (run / "last.safetensors").stat().st_mtime_ns for run in runs} == before


def test_a_stage_that_fails_is_named_and_the_others_are_finished(
    tmp_path: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["reproduce", "hebbian", "--scale", "demo", "--out", str(out), "--jobs", "2"]
    given = ["--corpus", str(corpus.path), *tiny(corpus), "--train.window", "99999"]
    assert main([*words, *given]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert "4 of the stages failed" in said
    assert "the same command resumes" in said
    assert list(out.glob("corpus-*"))


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, sentence in (
        (["reproduce", "context", str(tmp_path)], "context trains what it needs; leave out"),
        (["reproduce", "nothing"], "got 'nothing'"),
        (["reproduce", "context", "--scale", "large"], "got 'large'"),
        (["reproduce", "context", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["reproduce", "cache-gaps", str(tmp_path)], "compares two or three runs, not 1"),
    ):
        assert main(words) == 2
        assert sentence in capsys.readouterr().err


def tiny(corpus: Corpus) -> list[str]:
    """The tiny recipe; its corpus is given, so its own keys must fit what that was built with."""
    manifest = corpus.manifest
    own = ["--corpus.source", manifest.source, "--corpus.tokenizer", "wikitext"]
    return [*as_words(TINY), *own, "--corpus.min_count", "1"]
