"""What a plan says below its table: how it was measured, and where its long stages should run."""

import subprocess
from typing import Any

import pytest
import torch
from rich.table import Table

from micronet_lm.cli.plan_advice import Commands
from micronet_lm.cli.run_tables import plan_shown
from micronet_lm.pipeline.places import PLACES, exchanged_bytes, seconds_at, sharing
from micronet_lm.pipeline.speed import measured_device
from micronet_lm.training.device import gpu_name, wait_for

PLAN = Commands(
    plan=["micronet", "run", "paper/micronet", "--out", "runs/paper"],
    teacher=["train", "paper/teacher", "--corpus", "runs/paper/corpus"],
)
MONTH = 30 * 86_400.0


def row(stage: str, seconds: float, *, runs: bool = True, **more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"changes": [], "tokens": None, "memory": None, "disk": None}
    known = {"stage": stage, "state": "to do", "runs": runs, "seconds": seconds}
    return {**known, **empty, "parameters": 54_000_000, **more}


def said(*rows: dict[str, Any], commands: Commands | None = PLAN) -> str:
    _, *lines = plan_shown("out", list(rows), "2 threads", commands=commands)
    return "\n".join(line for line in lines if isinstance(line, str))


def test_threads_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("micronet_lm.pipeline.speed.measured_threads", lambda: 1)
    assert measured_device().endswith("1 thread (OMP_NUM_THREADS)")
    monkeypatch.setattr("micronet_lm.pipeline.speed.measured_threads", lambda: 2)
    assert measured_device().endswith("2 threads (OMP_NUM_THREADS)")
    assert "on this machine with 2 threads." in said(row("teacher", 60.0))


def test_the_gpu_is_named_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has used the GPU cannot fork, and stages are forks."""

    def never(*_: Any) -> None:
        raise AssertionError("this process must not use the GPU")

    def answer(words: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.CompletedProcess(words, 0, "Some GPU\n", "")

    for name in ("get_device_name", "is_available", "init", "_lazy_init"):
        monkeypatch.setattr(torch.cuda, name, never)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(subprocess, "run", answer)
    gpu_name.cache_clear()
    try:
        assert measured_device().startswith("Some GPU and ")
    finally:
        gpu_name.cache_clear()


def test_only_a_gpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    for name in ("cpu", "cuda:1"):
        wait_for(torch.device(name))
    assert waited == [torch.device("cuda:1")]


def test_a_short_plan_says_no_more() -> None:
    assert said(row("teacher", 60.0), row("prune", MONTH, runs=False)).count("\n") == 0


def test_long_stages_are_told_where_to_run_with_the_commands() -> None:
    heavy: dict[str, Any] = {"operations": 1e21, "steps": 200_000}
    rows = [
        row("corpus", 60.0),
        row("teacher", MONTH, rows=14, **heavy),
        row("soft-labels", MONTH, operations=1e20),
        row("student", MONTH, rows=16, **heavy),
        row("search-cache", MONTH, operations=1e15),
        row("account", 5.0),
    ]
    text = said(*rows)
    assert "More than 6 hours each here: teacher, soft-labels, student, search-cache." in text
    assert "GPUs help: teacher, soft-labels, student, search-cache." in text
    assert "Several GPUs or nodes can share: teacher, soft-labels, student." in text
    assert "Assumed, not measured: a core does 25 billion operations per second" in text
    # 14 sequences can be shared by 7 processes, 16 by 8 on two nodes.
    assert (
        "micronet run paper/micronet --out runs/paper --executor slurm --gpus teacher=7 "
        "--nodes teacher=2 --gpus soft-labels=8 --nodes soft-labels=2 --gpus student=8 "
        "--nodes student=2"
    ) in text
    assert (
        "torchrun --nproc-per-node 7 -m micronet_lm train paper/teacher --corpus "
        "runs/paper/corpus --out runs/teacher"
    ) in text
    assert "micronet run paper/micronet --out runs/paper --take teacher=runs/teacher" in text
    assert "micronet" not in said(*rows, commands=None)


def test_a_long_plan_has_a_table_of_other_places() -> None:
    rows = [row("teacher", MONTH, operations=1.5e18, steps=1000, rows=16), row("pack", 5.0)]
    shown = plan_shown("out", rows, "2 threads", commands=PLAN)
    (table,) = (own for own in shown if isinstance(own, Table) and own.title == "Elsewhere")
    columns = {str(column.header): list(map(str, column.cells)) for column in table.columns}
    assert list(columns) == ["stage", "1 core", "1 GPU", "8 GPUs"]
    assert columns["stage"] == ["teacher", "pack", "still to do"]
    assert [columns[name][0] for name in columns] == ["teacher", "694 days", "27.8 h", "3.5 h"]
    assert [columns[name][1] for name in columns] == ["pack", "5 s", "5 s", "5 s"]


def test_places_differ_as_assumed() -> None:
    core, gpu, gpus = PLACES
    reading = row("soft-labels", 1.0, operations=1e18)
    assert seconds_at(core, reading) == pytest.approx(1e18 / 25e9)
    assert seconds_at(gpu, reading) == pytest.approx(1e18 / 15e12)
    assert seconds_at(gpus, reading) == pytest.approx(1e18 / 15e12 / 8)
    training = row("teacher", 1.0, operations=1e18, steps=1000, rows=14)
    exchange = 1000 * exchanged_bytes(54_000_000, 7) / 50e9
    assert seconds_at(gpus, training) == pytest.approx(1e18 / 15e12 / 7 + exchange)
    tiny = row("teacher", 1.0, operations=1.0, steps=1000, rows=16)
    assert seconds_at(gpu, tiny) == pytest.approx(1000 * 3_000 * 5e-6)
    assert seconds_at(gpu, row("pack", 7.0)) == 7.0  # a GPU does not help
    assert sharing(row("search-cache", 1.0), 8) == 1
    assert exchanged_bytes(100, 2) == 400
