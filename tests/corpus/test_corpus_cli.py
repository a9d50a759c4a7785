"""The verbs `corpus build` and `corpus info`, as far as they go beyond the library."""

import argparse
import json
from pathlib import Path

import pytest

from micronet_lm.cli import corpus as verb
from micronet_lm.corpus import Corpus
from micronet_lm.errors import CorpusError, UsageError


def run(*words: str) -> int:
    parser = argparse.ArgumentParser(prog="micronet")
    verb.add(parser.add_subparsers())
    arguments = parser.parse_args(["corpus", *words])
    code = arguments.run(arguments)
    assert isinstance(code, int)
    return code


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "text.txt"
    path.write_text("a line of [bold]text[/bold]\n" * 100)
    return str(path)


def test_build_and_info_print_one_object(
    text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "c"
    assert run("build", text, "--out", str(out), "--split", "0.8,0.1,0.1", "--json") == 0
    printed = capfd.readouterr()
    facts = json.loads(printed.out)
    assert printed.err == ""
    corpus = Corpus.open(out)
    assert facts["fingerprint"] == corpus.fingerprint
    assert facts["tokens"] == {split: corpus.tokens(split) for split in ("train", "valid", "test")}
    assert facts["split"] == [0.8, 0.1, 0.1]
    assert facts["words"] == corpus.vocabulary.size
    assert run("info", str(out), "--json") == 0
    assert json.loads(capfd.readouterr().out) == facts
    assert run("info", str(out), "--json", "--top", "2") == 0
    frequent = json.loads(capfd.readouterr().out)["most_frequent"]
    assert frequent == [{"word": "]", "count": 160}, {"word": "/", "count": 80}]


def test_people_get_a_table(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--tokenizer", "wikitext", "--max-vocabulary", "4")
    assert run("build", text, "--out", str(tmp_path / "c"), *options) == 0
    shown = capsys.readouterr().out
    assert Corpus.open(tmp_path / "c").fingerprint in shown
    assert "[bold]text[/bold]" in shown  # a word, not an instruction to the terminal
    for word in ("train", "valid", "test", "4 words", "%"):
        assert word in shown


def test_options_reach_the_builder(text: str, tmp_path: Path) -> None:
    out = str(tmp_path / "c")
    run("build", text, "--out", out, "--tokenizer", "wikitext", "--min-count", "7")
    with pytest.raises(CorpusError, match="other settings"):
        run("build", text, "--out", out)
    run("build", text, "--out", out, "--min-count", "5", "--max-vocabulary", "6", "--force")
    manifest = Corpus.open(out).manifest
    assert (manifest.tokenizer, manifest.min_count, manifest.max_vocabulary) == ("word-2", 5, 6)
    with pytest.raises(CorpusError, match="no file or folder"):
        run("build", "wikitext-2", "--from", str(tmp_path / "x"), "--out", str(tmp_path / "d"))


def test_the_source_may_be_left_out() -> None:
    parser = argparse.ArgumentParser()
    verb.add(parser.add_subparsers())
    assert parser.parse_args(["corpus", "build", "--out", "x"]).source == "python-docs"


@pytest.mark.parametrize("split", ["half", "0.9,0.1", "0.9,0.05,x", "1,2,3", "nan,0.5,0.5"])
def test_a_nonsense_split(text: str, tmp_path: Path, split: str) -> None:
    with pytest.raises(UsageError, match=r"like 0\.9,0\.05,0\.05"):
        run("build", text, "--out", str(tmp_path / "c"), "--split", split)


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["build", "--help"], ["info", "--help"]):
        with pytest.raises(SystemExit) as stopped:
            run(*words)
        assert stopped.value.code == 0
        assert "\n  micronet corpus " in capsys.readouterr().out
