"""What is finished is told at once: a later failure or a kill does not take it back."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from micronet_lm.errors import PipelineError
from micronet_lm.pipeline import Stage, State, Workspace
from micronet_lm.pipeline.pool import Pool, run_side_by_side
from micronet_lm.pipeline.stage import Product


def works(here: Path, inputs: Mapping[str, Product]) -> dict[str, Any]:
    here.mkdir(parents=True, exist_ok=True)
    (here / "number").write_text("7")
    return {"number": 7}


def leaves_nothing(here: Path, inputs: Mapping[str, Product]) -> dict[str, Any]:
    here.mkdir(parents=True, exist_ok=True)
    return {"number": 7}


def fails(here: Path, inputs: Mapping[str, Product]) -> dict[str, Any]:
    raise PipelineError("there is no disk")


@pytest.mark.parametrize("here", [True, False], ids=["in this process", "as jobs"])
def test_a_finished_stage_is_told_before_another_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    if here:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    else:
        pytest.importorskip("submitit")
    first = Stage(name="first", folder="first", settings={}, work=works)
    second = Stage(name="second", folder="second", settings={}, needs={"one": first}, work=fails)
    workspace = Workspace(tmp_path / "out", shared=True)
    told: list[tuple[str, State]] = []
    with pytest.raises(PipelineError, match="there is no disk"):
        run_side_by_side(
            workspace,
            [second],
            Pool(jobs=2),
            lambda line: None,
            lambda stage: told.append((stage.name, workspace.state(stage))),
        )
    assert told == [("first", State.COMPLETE)]


def test_a_stage_whose_input_vanished_is_not_left_out_in_silence(tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    first = Stage(name="first", folder="first", settings={}, work=leaves_nothing)
    second = Stage(name="second", folder="second", settings={}, needs={"one": first}, work=works)
    with pytest.raises(PipelineError, match=r"second .*: an input of it vanished"):
        run_side_by_side(Workspace(tmp_path, shared=True), [second], Pool(), lambda line: None)


def test_the_seconds_of_a_killed_call_are_counted_up_to_its_last_file(tmp_path: Path) -> None:
    stage = Stage(name="first", folder="first", settings={}, work=works)
    workspace = Workspace(tmp_path)
    with workspace.occupied(stage):
        workspace.begin(stage)
    begun = (tmp_path / "stages" / "first.json").stat().st_mtime
    works(workspace.folder(stage), {})
    os.utime(workspace.folder(stage) / "number", (begun + 90, begun + 90))
    again = workspace.begin(stage)  # after a kill, the record is older than the last file
    assert again.seconds == pytest.approx(90, abs=0.01)
    os.utime(workspace.folder(stage) / "number", (begun - 5, begun - 5))
    assert workspace.begin(stage).seconds == again.seconds  # nothing was done since
