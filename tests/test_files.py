"""Regular files only, and no link followed where something is written."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.damage import SPOILED, spoil

from micronet_lm.artifact import open_packed
from micronet_lm.cli.main import main
from micronet_lm.config import load_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ArtifactError, ConfigError, CorpusError, RunError
from micronet_lm.evaluation import perplexity
from micronet_lm.files import (
    locked,
    open_own,
    open_regular,
    read_json,
    read_json_lines,
    read_small,
    refusing_damage,
)
from micronet_lm.runs import run_corpus


def test_a_lock_does_not_truncate_the_target_of_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".lock").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic link"), locked(folder):
        pass
    assert precious.read_text() == "precious"


def test_a_lock_keeps_the_bytes_of_its_file(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("kept")
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text() == "kept"
    with locked(tmp_path), pytest.raises(BlockingIOError), locked(tmp_path):
        pass


def test_writing_in_place_follows_no_link(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "metrics.jsonl"
    precious.write_text("precious")
    link.symlink_to(precious)
    with pytest.raises(OSError, match="symbolic link"):
        open_own(link, os.O_WRONLY | os.O_APPEND)
    with open_own(tmp_path / "new", os.O_WRONLY | os.O_APPEND) as file:
        file.write(b"a")
    with open_own(tmp_path / "new", os.O_WRONLY | os.O_APPEND) as file:
        file.write(b"b")
    assert (tmp_path / "new").read_bytes() == b"ab"


@pytest.mark.usefixtures("alarm")
def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    """Each of these waited for a writer, for ever."""
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(pipe)
    with pytest.raises(ConfigError, match="not a regular file"):
        load_recipe(str(pipe))
    with pytest.raises(ArtifactError, match="not a regular file"):
        open_packed(pipe)
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / ".lock")
    with pytest.raises(OSError, match="not a regular file"), locked(tmp_path / "run"):
        pass


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("name", ["manifest.json", "corpus.json", "corpus-1.json"])
def test_a_pipe_in_place_of_a_record_is_refused_without_waiting(tmp_path: Path, name: str) -> None:
    """Reading the manifest of a folder from elsewhere waited for ever."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="not a regular file"):
        read_json(tmp_path / name)
    if name == "manifest.json":
        assert main(["verify", str(tmp_path)]) != 0
        with pytest.raises(OSError, match="not a regular file"):
            Corpus.open(tmp_path)
    if name == "corpus.json":
        with pytest.raises(RunError, match="not a regular file"):
            run_corpus(tmp_path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "\xff", ""])
def test_a_record_that_is_not_json_is_refused(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"\w"):
        read_json(file)
    assert main(["verify", str(tmp_path)]) != 0
    assert "unexpected" not in capsys.readouterr().err
    with pytest.raises(CorpusError, match="damaged"):
        Corpus.open(tmp_path)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("read", [read_json, read_json_lines])
@pytest.mark.parametrize("how", SPOILED)
def test_damage_is_one_sentence_with_the_file_and_the_remedy(
    tmp_path: Path, how: str, read: Callable[[Path], Any]
) -> None:
    """Names that stand twice, NaN, 1e999 and half characters were accepted."""
    file = tmp_path / "record.json"
    spoil(file, how)
    with pytest.raises(RunError) as caught, refusing_damage(file, RunError, "make it again"):
        read(file)
    told = str(caught.value)
    assert told.startswith(f"{file} is damaged (")
    assert SPOILED[how] in told
    assert told.endswith("): make it again")
    assert "\n" not in told


def test_a_file_that_is_not_there_is_not_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), refusing_damage(tmp_path / "x", RunError, "remove it"):
        read_json(tmp_path / "x")


def test_what_a_record_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    with (
        pytest.raises(RunError, match=r"x is damaged \(it has no 'step'\): remove it"),
        refusing_damage(tmp_path / "x", RunError, "remove it"),
    ):
        read_json(tmp_path / "x")["step"]


def test_lines_are_read_to_the_last_whole_one_and_damage_is_numbered(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text('{"a": 1}\n[2.5, -3]\n{"half')
    assert read_json_lines(file) == [{"a": 1}, [2.5, -3]]
    file.write_text('{"a": 1}\n{"a": 1, "a": 2}\n')
    with pytest.raises(ValueError, match=r"^line 2 names 'a' twice$"):
        read_json_lines(file)
    file.write_text("")
    assert read_json_lines(file) == []


def test_the_largest_perplexity_that_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(json.dumps(perplexity(1e6)))
    assert read_json(tmp_path / "x") == perplexity(1e6)


def test_a_device_without_end_is_refused() -> None:
    with pytest.raises(OSError, match="not a regular file"):
        read_small(Path("/dev/zero"), 100)


def test_a_file_beyond_its_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(bytes(101))
    assert len(read_small(tmp_path / "long", 101)) == 101
    with pytest.raises(OSError, match="more than 100 bytes"):
        read_small(tmp_path / "long", 100)


def test_what_nobody_expected_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("of\nsome kind")

    monkeypatch.setattr("micronet_lm.cli.main._parser", fail)
    monkeypatch.delenv("MICRONET_DEBUG", raising=False)
    assert main(["presets"]) == 1
    out = capsys.readouterr()
    assert out.err.startswith("micronet: unexpected ZeroDivisionError: of some kind; ")
    assert "MICRONET_DEBUG=1" in out.err
    assert out.err.count("\n") == 1
    monkeypatch.setenv("MICRONET_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["presets"])
