"""`micronet verify` tells whole from damaged for every kind of file that this program writes."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.support.damage import SPOILED, spoil
from tests.support.shapes import LEAST_NATIVE

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import random_model
from micronet_lm.cli.main import main
from micronet_lm.config import dump_recipe, load_recipe
from micronet_lm.runs.checkpoint import FORMAT, checksum_entries
from micronet_lm.runs.seal import sealed
from micronet_lm.runtime.personal_file import Frame, Memories, encoded
from micronet_lm.serve.session_files import DamagedSessionError, Saved, SessionFiles

FRAME = Frame(model=7, width=2, vocabulary=5, states=3, knows="the".__eq__)
MEMORIES = Memories(
    words=("knob",),
    counts=(3,),
    following=np.array([4, 5], np.int32),
    states=np.array([[1.0, -2.0], [0.5, 0.0]], np.float16),
)
NAME = "A" * 22
ABOUT = Saved(model="demo", created=1, tokens=5)


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what is told of damage: one sentence."""
    capsys.readouterr()
    assert main(["verify", str(path)]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


def found(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return what is told of each kind of thing in what is whole."""
    capsys.readouterr()
    assert main(["verify", str(path), "--json"]) == 0
    return {one["kind"]: one["told"] for one in json.loads(capsys.readouterr().out)["found"]}


def test_a_personal_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was called a damaged packed file."""
    path = tmp_path / "me.personal"
    whole = encoded(MEMORIES, FRAME)
    path.write_bytes(whole)
    assert found(path, capsys) == {"personal memory": "whole"}
    for place in range(8, len(whole)):
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        told = refused(path, capsys)
        assert f"{path}: is truncated or damaged" in told
        assert "restore it from a copy" in told


def test_a_session_of_the_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the engine's part of it had a hash: other bits restored to another text."""
    folder = tmp_path / "sessions"
    files = SessionFiles(folder)
    files.write(NAME, ABOUT, b"state\nof a text")
    assert files.read(NAME) == (ABOUT, b"state\nof a text")
    path = folder / f"{NAME}.session"
    assert found(path, capsys) == found(folder, capsys) == {"session": "whole"}
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        with pytest.raises(DamagedSessionError, match="damaged: begin a new one"):
            files.read(NAME)
        assert str(path) in refused(path, capsys)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedSessionError):
            files.read(NAME)
    assert str(path) in refused(folder, capsys)


def test_a_session_of_an_earlier_version_is_still_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = json.dumps({"micronet": "micronet session 1", **vars(ABOUT)}).encode()
    path = tmp_path / f"{NAME}.session"
    path.write_bytes(head + b"\nstate")
    assert SessionFiles(tmp_path).read(NAME) == (ABOUT, b"state")
    assert "no checksum" in found(path, capsys)["session"]


def run_folder(path: Path) -> Path:
    """Write a run folder with all that `verify` reads."""
    path.mkdir()
    (path / "recipe.yaml").write_text(sealed(dump_recipe(load_recipe("demo"))))
    (path / "corpus.json").write_text(json.dumps({"path": "../corpus", "fingerprint": "f"}))
    (path / "precision.json").write_text("{}")
    (path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2}\n')
    tensors = {"plugin.hebbian.seen": np.arange(6, dtype=np.int32)}
    progress = json.dumps({"step": 7})
    entries = {"format": FORMAT, "progress": progress, **checksum_entries(tensors, progress)}
    save_file(tensors, path / "counters.safetensors", metadata=entries)
    return path


def test_the_counters_and_records_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were not read at all."""
    run = run_folder(tmp_path / "run")
    told = found(run, capsys)
    assert told["checkpoint"] == told["recipe"] == "whole"
    assert told["records"].startswith("3 JSON files")
    counters = run / "counters.safetensors"
    whole = counters.read_bytes()
    counters.write_bytes(whole[:-1] + b"\1")
    assert str(counters) in refused(run, capsys)
    counters.write_bytes(whole)
    (run / "metrics.jsonl").write_text('{"step": 1, "step": 2}\n')
    assert f"{run / 'metrics.jsonl'} is damaged (line 1 names 'step' twice)" in refused(run, capsys)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("how", SPOILED)
def test_results_of_a_sweep_and_an_analysis(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    for name in ("sweep.json", "sensitivity.json"):
        folder = tmp_path / Path(name).stem
        folder.mkdir()
        (folder / name).write_text('{"points": []}\n')
        run_folder(folder / "run")
        told = found(folder, capsys)
        assert told["results"].startswith("1 JSON files")
        assert told["checkpoint"] == "whole"
        spoil(folder / name, how)
        told_damage = refused(folder, capsys)
        assert f"{folder / name} is damaged" in told_damage
        assert SPOILED[how] in told_damage


def test_a_packed_file_is_one_whatever_its_card_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.safetensors"
    model = random_model(LEAST_NATIVE)
    model.card["format"] = "micronet-checkpoint-2"  # type: ignore[index]
    write_packed(path, model)
    assert found(path, capsys) == {"packed file": "whole"}
