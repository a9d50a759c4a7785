"""The command line as a user meets it: real words, real files, one sentence for a mistake."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.corpora import write_story
from tests.support.recipes import BRIEF, as_words
from tests.support.verbs import train_demo

from micronet_lm.cli.main import main
from micronet_lm.corpus import build_corpus
from micronet_lm.corpus.store import Corpus

TINY = as_words(BRIEF)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_story(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def built(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return build_corpus(str(text), tmp_path_factory.mktemp("corpus") / "story")


@pytest.fixture(scope="module")
def run(built: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_demo(tmp_path_factory.mktemp("runs") / "tiny", built, TINY)


def fails(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run what must fail; return the exit code and the one sentence that it said."""
    code = main(words)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("micronet: ")
    assert said.err.count("\n") == 1, said.err
    return code, said.err


@pytest.mark.needs_torch
def test_train_prints_one_json_object(
    built: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "demo", "--out", str(tmp_path / "r"), "--corpus", str(built.path), *TINY]
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["steps"] == 4
    assert report["tokens"] == 4 * 2 * 24
    assert 1 < report["validation_perplexity"] < 200


def test_a_finished_run_is_not_trained_again(
    run: Path, built: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (run / "last.safetensors").stat().st_mtime_ns
    assert main(["train", "demo", "--out", str(run), "--corpus", str(built.path), *TINY]) == 0
    assert "Trained 4 steps" in capsys.readouterr().out
    assert main(["train", "--resume", str(run)]) == 0
    assert (run / "last.safetensors").stat().st_mtime_ns == before


@pytest.mark.needs_torch
def test_train_builds_the_corpus_of_the_recipe(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["train", "demo", "--out", str(out), "--corpus.source", str(text), *TINY]
    assert main([*words, "--corpus.max_vocabulary", "70"]) == 0
    assert len(Corpus.open(out / "corpus").vocabulary) == 70
    capsys.readouterr()
    # The run and its corpus move together.
    moved = tmp_path / "moved"
    out.rename(moved)
    assert main(["evaluate", str(moved), "--split", "test", "--json"]) == 0


def test_evaluate_reports_the_contract(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = []
    for chunk in ("1", "97", "4032"):
        assert main(["evaluate", str(run), "--split", "test", "--chunk", chunk, "--json"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    tokens = Corpus.open(Path(run / json.loads((run / "corpus.json").read_text())["path"])).tokens(
        "test"
    )
    for report in reports:
        assert report["tokens"] == tokens - 1
        assert report["perplexity"] == pytest.approx(reports[0]["perplexity"], rel=1e-6)
        assert {"bits_per_token", "bins", "seconds", "loss", "split"} <= set(report)
    assert main(["evaluate", str(run), "--checkpoint", "last"]) == 0
    assert "perplexity" in capsys.readouterr().out


@pytest.mark.needs_torch
def test_resuming_with_more_steps(
    built: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "r")
    assert main(["train", "demo", "--out", out, "--corpus", str(built.path), *TINY]) == 0
    assert main(["train", "--resume", out, "--train.steps", "6"]) == 0
    assert "Trained 6 steps" in capsys.readouterr().out
    words = ["train", "--resume", out, "--model.width", "32", "--model.embedding_widths"]
    assert main([*words, "32,8,4"]) == 1
    assert "holds a run with another model.embedding_widths, model.width" in capsys.readouterr().err


@pytest.mark.needs_torch
def test_mistakes_of_the_command_line_exit_with_2(
    built: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "never")
    for words, said in {
        ("train",): "give what to train and where",
        ("train", "dmo", "--out", out): "did you mean 'demo'?",
        ("train", "demo", "--out", out, "--model.contxt", "3"): "did you mean 'context'?",
        ("train", "demo", "--out", out, "--fast"): "'--fast' is not an option here",
        ("train", "demo", "--out", out, "--resume", out): "leave out what to train, and --out",
        ("evaluate", out, "--fast"): "'--fast' is not an option here",
        ("evaluate", out, "--model.width", "3"): "'--model.width' is not an option here",
        ("search-cache", out, "--model.width", "3"): "'--model.width' is not an option here",
        ("reproduce", "cache-gaps", out): "compares two or three runs, not 1",
        ("reproduce", "nothing", out, out): "got 'nothing'",
        ("presets", "nothing"): "there is no preset 'nothing'",
        ("distill", "demo", "--out", out, "--distill.top_k", "9"): "name the teacher's soft labels",
        ("distill", "demo", "--out", out): "the recipe has no section distill",
        (
            *("distill", "demo", "--out", out, "--labels", out, "--distill.top_k", "9"),
            *("--prune.every", "9"),
        ): "has stages after this training (prune): micronet run",
        ("train", "demo", "--out", out, "--distill.top_k", "9"): "needs a teacher's soft labels",
        ("train", "demo", "--out", out, "--prune.every", "9"): "needs a trained run",
        ("train", "demo", "--out", out, "--quantize.bits", "9"): "micronet quantize RUN",
        ("evaluate", out, "--split", "dev"): "must be one of 'train', 'valid', 'test', got 'dev'",
        ("evaluate",): "required: TARGET",
        ("soft-labels", out): "required: --out",
        ("soft-labels", out, "--out", out, "--top-k", "0"): "--top-k must be at least 1, got 0",
        ("soft-labels", out, "--out", out, "--top-k", "3", "--samples", "3"): "not allowed with",
        ("distill",): "micronet distill RECIPE --out RUN",
        (): "required: VERB",
    }.items():
        code, sentence = fails(words, capsys)
        assert (code, said in sentence) == (2, True), sentence
    short = ["train", "demo", "--out", out, "--corpus", str(built.path)]
    code, sentence = fails([*short, "--model.vocabulary", "9000"], capsys)
    assert (code, "model.vocabulary is 9,000 but" in sentence) == (2, True)
    # The corpus has fewer words than the demo's last cutoff of 5000.
    code, sentence = fails(short, capsys)
    assert (code, "the last cutoff must be below the vocabulary of" in sentence) == (2, True)
    assert not Path(out).exists()


def test_work_that_fails_exits_with_1(
    run: Path, built: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in {
        ("evaluate", str(tmp_path)): "is not a run",
        ("train", "--resume", str(tmp_path)): "is not a run",
        ("train", "demo", "--out", str(tmp_path / "r"), "--corpus", str(tmp_path)): "",
        ("evaluate", str(run), "--corpus", str(tmp_path / "gone")): "no longer at",
    }.items():
        code, sentence = fails(words, capsys)
        assert (code, said in sentence) == (1, True), sentence
    again = ["train", "demo", "--out", str(run), "--corpus", str(built.path), *TINY]
    code, sentence = fails([*again, "--train.seed", "5"], capsys)
    assert code == 1
    assert "holds a run with another train.seed" in sentence


@pytest.mark.needs_torch
def test_a_folder_that_cannot_be_written(
    built: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    words = ["train", "demo", "--out", str(file / "run"), "--corpus", str(built.path), *TINY]
    code, sentence = fails(words, capsys)
    assert (code, "file" in sentence) == (1, True)


def test_help_has_an_example_for_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    verbs = ("presets", "train", "soft-labels", "distill", "search-cache", "evaluate", "account")
    for verb in ("corpus build", "corpus info", *verbs, "reproduce", "quantize", "run", "report"):
        words = verb.split()
        with pytest.raises(SystemExit) as left:
            main([*words, "--help"])
        assert left.value.code == 0
        assert f"micronet {' '.join(words)}" in capsys.readouterr().out.split("example")[1]


@pytest.mark.needs_torch
def test_a_runs_own_corpus_must_be_the_recipes(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, other = tmp_path / "run", tmp_path / "other.txt"
    other.write_text(text.read_text("utf-8").replace("word", "term"), encoding="utf-8")
    words = ["train", "demo", "--out", str(out), *TINY]
    # The first try builds the corpus, and fails on the window.
    assert main([*words, "--corpus.source", str(text), "--train.window", "99999"]) == 1
    capsys.readouterr()
    code, sentence = fails([*words, "--corpus.source", str(other)], capsys)
    assert (code, f"was built with source {text}, not {other}" in sentence) == (1, True)
    assert main([*words, "--corpus.source", str(text)]) == 0


@pytest.mark.needs_torch
def test_a_run_does_not_go_on_with_another_corpus(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, word in (("a", "word"), ("b", "term")):
        copy = tmp_path / "story.txt"
        copy.write_text(text.read_text("utf-8").replace("word", word), encoding="utf-8")
        build_corpus(str(copy), tmp_path / name)
    words = ["train", "demo", "--out", str(tmp_path / "run"), *TINY, "--corpus"]
    assert main([*words, str(tmp_path / "a")]) == 0
    capsys.readouterr()
    code, sentence = fails([*words, str(tmp_path / "b")], capsys)
    assert (code, "is not the corpus of this run" in sentence) == (1, True)
    # What was really read is written down, not what the preset would have taken.
    assert f"source: {tmp_path / 'story.txt'}" in (tmp_path / "run" / "recipe.yaml").read_text()


def test_a_teacher_a_pass_and_a_student(
    run: Path, built: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, student = str(tmp_path / "labels"), str(tmp_path / "student")
    words = ["soft-labels", str(run), "--out", labels, "--top-k", "6"]
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["tokens"] == built.tokens("train") - 1
    assert 0 < report["hit_share"] < 1
    assert 0 < report["mass"] < 1
    assert report["bytes"] == report["tokens"] * 6 * 3
    assert "true word among the labels" in said.err
    assert "tokens/s" in said.err
    assert "left" in said.err
    assert main(words) == 0  # there is nothing to do; it says the same again
    assert "Next: micronet distill RECIPE" in capsys.readouterr().out
    words = ["distill", "demo", "--labels", labels, "--corpus", str(built.path), *TINY]
    words += ["--distill.top_k", "6", "--out", student]
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["steps"] == 4
    assert main(["distill", "--resume", student, "--train.steps", "6"]) == 0
    assert "Trained 6 steps" in capsys.readouterr().out
    # Neither verb takes the other's runs.
    code, sentence = fails(["train", "--resume", student], capsys)
    assert (code, "micronet distill RECIPE --labels DIR" in sentence) == (2, True)
    code, sentence = fails(["distill", "--resume", str(run), "--labels", labels], capsys)
    assert (code, "the recipe has no section distill" in sentence) == (2, True)
    # Labels that are not named, and labels that are no longer there.
    recipe = ["distill", "demo", "--corpus", str(built.path), *TINY, "--distill.top_k", "6"]
    recipe += ["--distill.teacher", "demo", "--out", str(tmp_path / "never")]
    code, sentence = fails(recipe, capsys)
    assert code == 2
    assert "made by: micronet train demo --out runs/teacher" in sentence
    assert "soft-labels runs/teacher --top-k 6 --out DIR" in sentence
    Path(labels).rename(tmp_path / "moved")
    code, sentence = fails(["distill", "--resume", student], capsys)
    assert (code, "has no soft labels" in sentence) == (1, True)
    more = ["--labels", str(tmp_path / "moved"), "--train.steps", "7"]
    assert main(["distill", "--resume", student, *more]) == 0
    assert not (tmp_path / "never").exists()
