"""`micronet personal`, and the memory where words are suggested."""

import json
from pathlib import Path

import pytest
from tests.support.verbs import report

from micronet_lm.cli.main import main


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(words) in (1, 2)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


def test_learn_show_suggest_forget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory, text = tmp_path / "me.personal", tmp_path / "letter.txt"
    text.write_text("Return the zorblax of the file.\n" * 4, encoding="utf-8")
    found = report(["personal", str(memory), "learn", str(text), "--json"], capsys)
    assert found["words"] == {"zorblax": 4}
    assert found["tokens"] == found["states"] == 32
    assert found["bytes"] == memory.stat().st_size
    data = memory.read_bytes()
    ask = ["predict", "Return the", "--prefix", "zorb", "--json", "--personal", str(memory)]
    assert [one["word"] for one in report([*ask, "--incognito"], capsys)["words"]] == ["zorblax"]
    assert memory.read_bytes() == data  # incognito
    report(ask, capsys)
    assert memory.read_bytes() != data  # it learned what was asked
    assert main(["personal", str(memory), "words"]) == 0
    assert "zorblax" in capsys.readouterr().out
    assert main(["personal", str(memory), "export"]) == 0
    exported = capsys.readouterr().out
    assert json.loads(exported)["words"] == {"zorblax": 4}
    forgotten = report(["personal", str(memory), "forget", "Zorblax", "--json"], capsys)
    assert forgotten["forgotten"] == {"Zorblax": True}
    assert b"zorblax" not in memory.read_bytes()
    assert report([*ask, "--incognito"], capsys)["words"] == []
    words = tmp_path / "words.json"
    words.write_text(exported, encoding="utf-8")
    other = tmp_path / "other.personal"
    assert report(["personal", str(other), "merge", str(words), "--json"], capsys)["merged"] == 1
    assert report(["personal", str(memory), "merge", str(other), "--json"], capsys)["merged"] == 1
    assert report(["personal", str(memory), "clear", "--json"], capsys)["words"] == {}
    assert main(["personal", str(memory), "show"]) == 0
    assert "0 words outside the vocabulary, 0 states" in capsys.readouterr().out


def test_typing_with_a_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, memory = tmp_path / "text.txt", tmp_path / "me.personal"
    text.write_text("The zorblax returns a list.\n" * 6, encoding="utf-8")
    model = "src/micronet_lm/models/demo.safetensors"
    words = ["evaluate", model, "--keystrokes", "--text", str(text), "--json"]
    found = report([*words, "--personal", str(memory)], capsys)["keystrokes"]
    assert found["personal"]["savings"] > found["line by line"]["savings"]
    assert found["personal"]["unknown"] < found["line by line"]["unknown"]
    data = memory.read_bytes()
    again = report([*words, "--personal", str(memory), "--incognito"], capsys)["keystrokes"]
    assert again["personal"]["savings"] > found["personal"]["savings"]
    assert memory.read_bytes() == data


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory = str(tmp_path / "me.personal")
    assert "needs words" in refused(["personal", memory, "forget"], capsys)
    assert "'learn' makes one" in refused(["personal", memory, "words"], capsys)
    assert "takes no more words" in refused(["personal", memory, "clear", "all"], capsys)
    assert "is for --personal" in refused(["predict", "a", "--incognito"], capsys)
    (tmp_path / "me.personal").write_bytes(b"something else")
    (tmp_path / "me.personal").chmod(0o600)
    assert "is not a personal memory" in refused(["personal", memory, "words"], capsys)
    model = "src/micronet_lm/models/demo.safetensors"
    told = refused(["evaluate", model, "--text", "x", "--personal", memory], capsys)
    assert "is for --keystrokes" in told
