"""The analysis: a point is an evaluation of the model with one matrix pruned; it is resumable."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.support.damage import SPOILED, spoil
from tests.support.models import analysed_model, analysed_text
from tests.support.processes import ENVIRONMENT, TORCHRUN

from micronet_lm.compression.magnitude import prunable
from micronet_lm.compression.sensitivity import Sensitivity, Setup, analyse, read_sensitivity
from micronet_lm.errors import RunError
from micronet_lm.training import evaluate
from micronet_lm.training.processes import Processes

ALONE = Processes(rank=0, count=1, device=torch.device("cpu"))
GRID = (0.3, 0.9)


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_points_are_evaluations_with_one_matrix_pruned(tmp_path: Path) -> None:
    lm, ids = analysed_model(), analysed_text()
    before = {name: value.clone() for name, value in lm.state_dict().items()}
    result = analyse(lm, ids, tmp_path / "points.jsonl", ALONE, grid=GRID)
    for name, value in lm.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert result.base == evaluate(lm, ids).loss
    assert result.losses.keys() == prunable(lm).keys()
    for name in ("embedding.tables.1", "blocks.0.inner.weight", "softmax.projections.1.weight"):
        for sparsity in GRID:
            other = analysed_model()
            matrix = prunable(other)[name]
            smallest = matrix.abs().flatten().argsort()[: round(matrix.numel() * sparsity)]
            matrix.data.view(-1)[smallest] = 0
            assert result.losses[name][sparsity] == evaluate(other, ids).loss
    curve = result.curves()["blocks.0.inner.weight"]
    assert curve(0.0) == pytest.approx(np.exp(result.base))
    assert list(curve.sparsities) == [0.0, 0.3, 0.9]
    assert result.sizes["blocks.0.inner.weight"] == 24 * 16
    assert json.dumps(result.as_json())


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "points.jsonl"
    whole = analyse(analysed_model(), analysed_text(), file, ALONE, grid=GRID)
    finished = file.read_bytes()
    # Killed in the middle of a line: what is complete stays, the rest is measured.
    file.write_bytes(finished[: len(finished) // 2])
    complete = finished[: len(finished) // 2].count(b"\n") - 1
    calls = []

    def counted(*args: object, **more: object) -> object:
        calls.append(args)
        return evaluate(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("micronet_lm.compression.sensitivity.evaluate", counted)
    done: list[int] = []
    again = analyse(analysed_model(), analysed_text(), file, ALONE, grid=GRID, advance=done.append)
    assert again == whole
    assert file.read_bytes() == finished
    points = 1 + 2 * len(whole.sizes)
    assert len(calls) == points - complete
    assert (done[0], sum(done)) == (complete, points)
    # A finer grid adds its points to those that are there.
    calls.clear()
    analyse(analysed_model(), analysed_text(), file, ALONE, grid=(*GRID, 0.5))
    assert len(calls) == len(whole.sizes)


def test_another_model_or_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "points.jsonl"
    analyse(analysed_model(), analysed_text(), file, ALONE, grid=GRID)
    other = analysed_model()
    other.tables[0].data[0, 0] += 1
    with pytest.raises(RunError, match="an analysis with other model: remove it"):
        analyse(other, analysed_text(), file, ALONE, grid=GRID)
    with pytest.raises(RunError, match="with other tokens, text"):
        analyse(analysed_model(), analysed_text()[:200], file, ALONE, grid=GRID)
    file.write_text("nonsense\n")
    with pytest.raises(RunError, match="is damaged"):
        analyse(analysed_model(), analysed_text(), file, ALONE, grid=GRID)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("how", SPOILED)
def test_spoiled_points_and_tables_are_one_sentence(tmp_path: Path, how: str) -> None:
    points, table = tmp_path / "points.jsonl", tmp_path / "table.json"
    for file in (points, table):
        spoil(file, how)
    with pytest.raises(RunError, match=r"points\.jsonl is damaged .*remove it") as caught:
        analyse(analysed_model(), analysed_text(), points, ALONE, grid=GRID)
    assert SPOILED[how] in str(caught.value)
    with pytest.raises(RunError, match=r"table\.json is damaged .*analyse again") as caught:
        read_sensitivity(table)
    assert SPOILED[how] in str(caught.value)


SCRIPT = """
import os, signal, sys
from pathlib import Path
from tests.support.models import analysed_model, analysed_text
from micronet_lm.compression import sensitivity
from micronet_lm.compression.sensitivity import analyse
from micronet_lm.training.processes import joined_processes

left, real = int(os.environ.get("KILLED_AFTER", 1000)), sensitivity.evaluate

def evaluate(*args, **more):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return real(*args, **more)

sensitivity.evaluate = evaluate
with joined_processes() as processes:
    analyse(analysed_model(), analysed_text(), Path(sys.argv[1]), processes, grid=(0.3, 0.9))
"""


def test_two_processes_and_a_kill_give_the_same_table(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    one = [sys.executable, str(script), str(tmp_path / "one.jsonl")]
    subprocess.run(one, check=True, env=ENVIRONMENT, timeout=200)
    words = [*TORCHRUN, str(script), str(tmp_path / "two.jsonl")]
    subprocess.run(words, check=True, env=ENVIRONMENT, capture_output=True, timeout=200)
    assert lines(tmp_path / "two.jsonl") == lines(tmp_path / "one.jsonl")

    killed = tmp_path / "killed.jsonl"
    alone = [sys.executable, str(script), str(killed)]
    dead = subprocess.run(alone, env={**ENVIRONMENT, "KILLED_AFTER": "5"}, check=False, timeout=200)
    assert dead.returncode == -signal.SIGKILL
    assert len(lines(killed)) == 1 + 5 < len(lines(tmp_path / "one.jsonl"))  # the setup, 5 points
    subprocess.run(alone, check=True, env=ENVIRONMENT, timeout=200)
    assert killed.read_bytes() == (tmp_path / "one.jsonl").read_bytes()


def test_curves_begin_at_the_untouched_model() -> None:
    setup = Setup(model="", tokens=3, text="")
    result = Sensitivity(setup=setup, base=2.0, sizes={"a": 4}, losses={"a": {0.5: 2.5, 0.9: 2.2}})
    curve = result.curves()["a"]
    assert curve(0.0) == pytest.approx(np.exp(2.0))
    assert curve(0.9) == pytest.approx(np.exp(2.5))  # monotone
