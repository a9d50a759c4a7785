"""What the verbs on packed files refuse: each mistake is one sentence."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.cli.main import main
from micronet_lm.corpus import Corpus, build_corpus


def test_mistakes_are_one_sentence(
    model: Path, run: Path, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut, other = tmp_path / "cut.safetensors", tmp_path / "other.txt"
    cut.write_bytes(model.read_bytes()[:-5])
    other.write_bytes(b"\xff\xfe text")
    one, empty = tmp_path / "one.txt", tmp_path / "empty.txt"
    one.write_text("word1")
    empty.write_text("")
    m = ["-m", str(model)]

    def told(**card: Any) -> Path:
        """The model with another card."""
        path = tmp_path / f"told-{len(list(tmp_path.iterdir()))}.safetensors"
        write_packed(path, replace(read_packed(model), card=card))
        return path

    for words, code, sentence in (
        (["predict", "x", "-m", "missing.safetensors"], 1, "there is no file"),
        (["predict", "x", "-m", str(cut)], 1, "cut"),
        (["predict", "x", "-m", str(other)], 1, "cannot be used"),
        (["predict", "x", "-m", str(run)], 1, f"pack it with micronet pack {run}"),
        (["predict", "x", "-m", str(tmp_path)], 1, "give a packed file, or the folder of a run"),
        (["score", str(tmp_path), *m], 1, f"{tmp_path} is a folder: give a text file"),
        (["evaluate", str(other)], 2, f"give the text to evaluate the packed file {other} on"),
        (["predict", "x", "-k", "0", *m], 2, "-k must be at least 1, got 0"),
        (["predict", "x", "--engine", "gpu", *m], 2, "gpu"),
        (["generate", "x", "--top-p", "0", *m], 2, "--top-p must be in (0, 1], got 0"),
        (
            ["generate", "x", "--temperature", "-1", *m],
            2,
            "--temperature must be in [0, inf), got -1",
        ),
        (["generate", "x", "-n", "-1", *m], 2, "--max-tokens must be at least 0, got -1"),
        (["score", str(one), *m], 1, "nothing to predict"),
        (["score", str(empty), "--lines", *m], 1, "no line"),
        (["score", str(other), *m], 1, "not UTF-8"),
        (["score", "missing.txt", *m], 1, "missing.txt"),
        (["score", str(one), "--threads", "0", *m], 2, "--threads must be at least 1, got 0"),
        (["bench", str(model), "--seconds", "0"], 2, "--seconds must be in (0, inf), got 0"),
        (["bench", "missing.safetensors"], 1, "there is no file"),
        (["inspect", "missing.safetensors"], 1, "neither a packed file nor a run"),
        (["inspect", "runs/nope"], 1, "there is neither a packed file nor a run at runs/nope"),
        (["inspect", str(model), "--checkpoint", "best"], 2, "--checkpoint is for runs"),
        (["inspect", str(tmp_path)], 1, "is not a run"),
        (["pack", str(run), "-o", str(tmp_path)], 2, f"choose {tmp_path / 'model.safetensors'}"),
        (["pack", str(run), "-o", str(one / "m")], 1, f"{one} is a file, not a folder"),
        (["pack", str(run), "-o", str(one / "x" / "m")], 1, f"{one} is a file, not a folder"),
        (["pack", str(tmp_path)], 1, "is not a run"),
        (["pack", str(run), "--checkpoint", "first"], 2, "first"),
        (["evaluate", str(model)], 2, "--corpus DIR"),
        (["evaluate", str(model), "--corpus", "x", "--text", "y"], 2, "--corpus DIR"),
        (["evaluate", str(model), "--text", str(empty)], 1, "nothing to predict"),
        (["evaluate", str(model), "--text", str(one), "--chunk", "5"], 2, "--chunk"),
        (["evaluate", str(model), "--text", str(one), "--cache.size", "5"], 2, "--cache.size"),
        (["evaluate", str(run), "--text", str(one)], 2, "--text"),
        (["evaluate", str(run), "--engine", "auto"], 2, "--engine is for packed files"),
        (["evaluate", str(run), "--threads", "1"], 2, "--threads is for packed files"),
        (["evaluate", str(model), "--text", str(one), "--split", "valid"], 2, "--split is for"),
        (
            ["evaluate", str(model), "--text", str(one), "--checkpoint", "last"],
            2,
            "--checkpoint is for runs",
        ),
        (
            ["evaluate", str(model), "--corpus", str(corpus.path), "--checkpoint", "best"],
            2,
            "--checkpoint is for runs",
        ),
        (["evaluate", "missing.safetensors", "--text", str(one)], 1, "there is no file"),
        (["account", str(told(shares=[1, 2]))], 1, "each of the model's 3 bins, got [1, 2]"),
        (["account", str(told(shares=[1, -2, 3]))], 1, "--shares"),
        (["account", str(told(shares=[0, 0, 0]))], 1, "--shares"),
        (["account", str(told(shares="many"))], 1, "--shares"),
        (["account", str(told(shares=[1e3, 1, 1]))], 1, "--shares"),
        (["account", str(told())], 2, "--shares"),
        (["account", str(model), "--cache.size", "5"], 2, "--cache.size"),
        (["account", str(cut)], 1, "cut"),
        (["account", "missing.safetensors"], 1, "there is no file"),
    ):
        capsys.readouterr()
        assert main(words) == code, words
        heard = capsys.readouterr()
        assert heard.out == "", words
        assert heard.err.startswith("micronet: "), heard.err
        assert heard.err.count("\n") == 1, heard.err
        assert sentence in heard.err, (words, heard.err)


def test_another_corpus_is_refused(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "other.txt"
    text.write_text("some other words\n" * 300, encoding="utf-8")
    other = build_corpus(str(text), tmp_path / "corpus")
    for verb in ("evaluate", "account"):
        capsys.readouterr()
        assert main([verb, str(model), "--corpus", str(other.path)]) == 1
        assert "another vocabulary" in capsys.readouterr().err
