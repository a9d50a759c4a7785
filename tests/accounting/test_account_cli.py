"""`micronet account` as a user meets it."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.support import verbs
from tests.support.corpora import story_corpus
from tests.support.recipes import BRIEF, as_words
from tests.support.verbs import train_demo

from micronet_lm.accounting import count, describe
from micronet_lm.accounting.figure import COMPONENTS, KINDS
from micronet_lm.accounting.formulas import FORMULAS
from micronet_lm.cli.main import main
from micronet_lm.config import load_recipe
from micronet_lm.corpus import Corpus

TINY = as_words({**BRIEF, "train.steps": 2, "train.precision": "float32"})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return story_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_demo(tmp_path_factory.mktemp("runs") / "tiny", corpus, TINY)


def report(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return verbs.report(["account", *words, "--json"], capsys)


def test_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(["paper/student", "--cache.size", "2000"], capsys)
    assert {"parameters", "storage", "operations", "score", "rules", "rows"} <= set(found)
    assert set(found["operations"]) == {"multiplies", "adds", "other", "total"}
    assert found["parameters"] == 8_304_213
    assert round(found["operations"]["total"], 2) == 18_455_386.76
    assert found["rules"] == "paper"
    assert found["differences"] == []
    for key in ("storage", "multiplies", "adds", "other"):
        whole = found["storage"] if key == "storage" else found["operations"][key]
        assert sum(row[key] for row in found["rows"]) == pytest.approx(whole, abs=1e-6)
    parts = [kind for key, kind in found["operations"].items() if key != "total"]
    assert sum(parts) == pytest.approx(found["operations"]["total"], abs=1e-6)
    expected = found["storage"] / 159e6 + found["operations"]["total"] / 318e6
    assert found["score"] == pytest.approx(expected, rel=1e-12)
    assert found["factors"]["storage"] == pytest.approx(159e6 / found["storage"])
    assert found["state"]["cache"] == 2000 * 257
    assert found["transient"]["moment"] == "prediction"
    assert {"part", "name", "bits", "density", "storage"} <= set(found["rows"][0])


def test_no_cache_is_a_cache_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    none, zero = (report(["paper/student", *more], capsys) for more in ([], ["--cache.size", "0"]))
    assert none == zero


def test_recipe_keys_density_and_bits(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(["paper/student", "--model.context", "129"], capsys)
    assert (found["parameters"], round(found["operations"]["total"], 2)) == (8_310_357, 17635003.76)
    small = report(["paper/student", "--density", "0.5", "--bits=8"], capsys)
    assert small["parameters"] == 8_304_213
    assert small["model"]["bits"] == 8
    assert sum(small["model"]["activation_quantizers"].values()) == 57
    assert small["unweighted"]["multiplies"] == small["operations"]["multiplies"] * 4
    assert {row["density"] for row in small["rows"] if row["name"] == "inner"} == {
        (768 * 256 / 2 + 768) / (768 * 257)
    }


def test_the_rules_name_their_differences(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["paper/student", "--bits", "9"]
    paper = report(words, capsys)
    found = report([*words, "--rules", "challenge", "--adds", "tree"], capsys)
    assert found["options"] == ["option --adds tree: integer sums at their real widths"]
    whole = paper["operations"]["total"] + sum(d["operations"] for d in found["differences"])
    assert whole == pytest.approx(found["operations"]["total"], abs=1e-5)
    by_name = {item["name"]: item for item in found["differences"]}
    heads = by_name["position scores once per head"]
    assert (heads["storage"], heads["operations"]) == (0, 8 * 7 * 97 * 24 * (1 + 9 / 32))
    assert main(["account", *words, "--rules", "challenge", "--adds", "tree"]) == 0
    said = capsys.readouterr().out
    assert "position scores once per head" in said
    assert "option --adds tree" in said
    assert "57 activation quantizers" in said


def test_the_table_by_layer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "paper/student", "--cache.size", "2000"]) == 0
    said = capsys.readouterr().out
    for words in ("layer 8", "bin 3", "cache", "8,304,213", "18,455,386.758", "of the baseline's"):
        assert words in said
    assert "differently" not in said
    assert main(["account", "paper/teacher", "--details"]) == 0
    said = capsys.readouterr().out
    assert "position scores" in said
    assert "…" not in said  # however narrow the window, no number is cut off


def test_formulas_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "--formulas"]) == 0
    said = capsys.readouterr().out
    assert "3n − 1" in said
    found = report(["--formulas"], capsys)
    assert len(found["formulas"]) == len(FORMULAS) >= 14
    assert {"title", "formula", "rules", "source"} == set(found["formulas"][0])
    assert "formulas" in report(["paper/student", "--formulas"], capsys)


def test_a_run_is_counted_with_its_corpus(
    run: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    found = report([str(run)], capsys)
    tests = corpus.split("test")
    shares = [int((tests < 20).sum()), int(((tests >= 20) & (tests < 60)).sum())]
    assert found["model"]["shares"] == [*shares, len(tests) - sum(shares)]
    given = report([str(run), "--shares", ",".join(map(str, found["model"]["shares"]))], capsys)
    assert given["operations"] == found["operations"]
    # The recipe with the same corpus has the same shape, but none of the checkpoint's zeros.
    words = [str(run / "recipe.yaml"), "--corpus", str(corpus.path)]
    recipe = report(words, capsys)
    assert recipe["parameters"] == found["parameters"]
    assert recipe["operations"]["total"] >= found["operations"]["total"]
    cached = report([str(run), "--cache.size", "50"], capsys)
    change = cached["operations"]["total"] - found["operations"]["total"]
    assert change == pytest.approx(50 * 16 + 50 * 15 + 149)
    assert report([str(run), "--checkpoint", "last"], capsys)["parameters"] == found["parameters"]


PLANS = (
    *(["--density", "0.5"], ["--bits", "4"], ["--bits", "32"], ["--activations", "text"]),
    *(["--embeddings", "full"], ["--scales", "row"]),
)


def test_a_finished_model_takes_no_plan(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    integers, file = tmp_path / "integers", tmp_path / "plain.safetensors"
    assert main(["quantize", str(run), "--steps", "0", "--out", str(integers)]) == 0
    assert main(["pack", str(run), "-o", str(file)]) == 0
    for target, what in ((integers, "a quantized run"), (file, "a packed file")):
        for words in PLANS:
            capsys.readouterr()
            assert main(["account", str(target), "--shares", "3,2,1", *words]) == 2, words
            captured = capsys.readouterr()
            assert captured.out == ""
            said = f"{words[0]} plans a compression, but {target} is {what}"
            assert said in captured.err
            assert captured.err.count("\n") == 1
        assert report([str(target), "--shares", "3,2,1"], capsys)["storage"] > 0
    # A run of floats can still be planned for.
    floats = report([str(run)], capsys)
    planned = report([str(run), "--bits", "4", "--scales", "row"], capsys)
    assert planned["storage"] < floats["storage"]
    assert report([str(integers)], capsys)["model"]["bits"] == 9


def test_a_corpus_tells_the_vocabulary(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    shape = ["--model.cutoffs", "20,60", "--model.embedding_widths", "96,32,8"]
    found = report(["demo", *shape, "--corpus", str(corpus.path)], capsys)
    expected = describe(
        load_recipe(
            "demo", {"model.cutoffs": [20, 60], "model.vocabulary": len(corpus.vocabulary)}
        ),
        "demo",
        tuple(found["model"]["shares"]),
    )
    assert found["operations"]["total"] == pytest.approx(float(count(expected).operations))


def test_mistakes_are_one_sentence(
    run: Path, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    student = "paper/student"
    (tmp_path / "model.safetensors").write_bytes(b"packed")
    (tmp_path / "empty").mkdir()
    for code, words, said in [
        (2, [], "give what to count"),
        (2, ["paper/studnt"], "is neither a preset (did you mean 'paper/student'?) nor"),
        (1, [str(tmp_path / "model.safetensors")], "cannot be used: it has 6 bytes"),
        (2, [str(tmp_path / "none.yaml")], "cannot be read"),
        (1, [str(tmp_path / "empty")], "is not a run"),
        (2, ["demo"], "has no vocabulary size: give its corpus with --corpus"),
        (2, ["demo", "--model.vocabulary", "9000"], "is not known: give a corpus"),
        (2, [student, "--model.contxt", "9"], "did you mean 'context'?"),
        (
            2,
            [student, "--density", "1.5"],
            "density must be from 0 (all pruned) to 1 (nothing pruned), got 1.5",
        ),
        (2, [student, "--activations", "text"], "--activations is about quantization"),
        (2, [student, "--scales", "row"], "--scales is about quantization"),
        (2, [student, "--checkpoint", "best"], "--checkpoint is for the folder of a run"),
        (2, [student, "--density", "half"], "--density must be a share like 0.642, got 'half'"),
        (
            2,
            [student, "--bits", "1"],
            "bits must be 2 to 31, or 32 for a model that is not quantized, got 1",
        ),
        (2, [student, "--bits", "many"], "invalid int value"),
        (2, [student, "--rules", "mine"], "got 'mine'"),
        (2, [student, "--adds", "tree"], "rules 'paper' have no --adds tree"),
        (2, [student, "--freebie"], "rules 'paper' have no --freebie"),
        (2, [student, "--rules", "challenge", "--freebie", "--bits", "9"], "are not quantized"),
        (2, [student, "--shares", "1,2"], "for each of the model's 3 bins, got 2"),
        (2, [student, "--shares", "a,b,c"], "must be a whole number, got 'a'"),
        (2, [student, "--plot", "where.doc"], "must end in .png, .svg or .pdf"),
        (2, [student, "--corpus", str(corpus.path)], "model.vocabulary is 267,735 but"),
        (2, [str(run), "--model.width", "8"], "cannot be set for a run"),
        (1, [str(run), "--corpus", str(tmp_path)], "is not a corpus"),
        (1, [student, "--plot", str(tmp_path / "model.safetensors" / "x.png")], ""),
    ]:
        capsys.readouterr()
        assert main(["account", *words]) == code, words
        captured = capsys.readouterr()
        assert captured.out == "", words
        assert captured.err.count("\n") == 1, captured.err
        assert said in captured.err, captured.err


def test_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pictures" / "where.png"
    found = report(["paper/student", "--bits", "9", "--plot", str(file)], capsys)
    assert found["score"] > 0
    with Image.open(file) as image:
        assert image.width > 1000
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
    for colour in (*KINDS.values(), COMPONENTS["attention"], COMPONENTS["softmax"]):
        wanted = tuple(bytes.fromhex(colour.removeprefix("#")))
        assert (pixels == wanted).all(axis=1).sum() > 1000, colour
    assert [path.name for path in file.parent.iterdir()] == ["where.png"]


def test_counting_needs_neither_torch_nor_matplotlib(run: Path) -> None:
    script = (
        "import sys; sys.modules['torch'] = sys.modules['matplotlib'] = None\n"
        "import micronet_lm.cli.main as m\n"
        "assert m.main(['account', 'paper/student', '--rules', 'challenge', '--json']) == 0\n"
        "assert m.main(['account', sys.argv[1], '--json']) == 0\n"
        "sys.exit(m.main(['account', 'paper/student', '--plot', 'never.png']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(run)], capture_output=True, text=True, check=False
    )
    assert done.stderr == (
        "micronet: this verb needs matplotlib: pip install -c constraints.txt '.[report]' in a "
        "clone of micronet-lm\n"
    )
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model.layers", "2000000000"], "model.layers must be at most 2,000 to be counted"),
        (["--model.width", "9" * 30], "model.width"),
        (["--density", "1e-999999999"], "must be a share like 0.642"),
        (["--density", "9" * 50], "must be a share like 0.642"),
    ],
)
def test_absurd_sizes_are_refused_at_once(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["account", "paper/student", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_large_sizes_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "paper/student", "--model.width", "2147483647", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] > 2**40
