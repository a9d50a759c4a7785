"""Stages in child processes: signals that end them are reported, requests to stop arrive."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.support.illegal import execute_illegal_instruction
from tests.support.processes import ENVIRONMENT
from tests.support.runs import same_tensors

from micronet_lm.pipeline import Stage, Workspace
from micronet_lm.pipeline.jobs import StageJob

Start = Callable[..., "subprocess.Popen[str]"]
PRECISION = ["--teacher.train.precision", "float32"]
PROGRAM = """
import os, signal, sys, time
from micronet_lm.cli.main import main
from micronet_lm.training.trainer import Trainer
from tests.support.illegal import execute_illegal_instruction

real = Trainer.step

def step(self):
    if self.progress.step == 2:
        {what}
    return real(self)

Trainer.step = step
sys.exit(main())
"""


@pytest.fixture(name="started")
def _started(recipe_file: Path, tmp_path: Path) -> Iterator[Start]:
    """Start `micronet run` as a program whose third training step does something."""
    processes = []

    def start(what: str, *words: str, **variables: str) -> "subprocess.Popen[str]":
        program = tmp_path / "program.py"
        program.write_text(PROGRAM.format(what=what), encoding="utf-8")
        asked = ["run", str(recipe_file), "--out", str(tmp_path / "out"), "--until", "teacher"]
        process = subprocess.Popen(
            [sys.executable, str(program), *asked, *PRECISION, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**ENVIRONMENT, **variables},
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("what", "number", "remedy"),
    [
        ("execute_illegal_instruction()", "SIGILL", "try --teacher.train.precision float32"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL", "--teacher.train.accumulate 2"),
        ("os.kill(os.getpid(), signal.SIGALRM)", "SIGALRM", "the cause is unknown"),
    ],
)
def test_a_stage_that_is_ended_by_a_signal_is_named(
    started: Start, tmp_path: Path, what: str, number: str, remedy: str
) -> None:
    process = started(what)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    last = said.strip().splitlines()[-1]
    assert last.startswith(f"micronet: stage teacher was ended by {number}; ")
    assert remedy in last
    assert last.endswith("the same command resumes from what was saved")


def test_errors_of_a_stage_arrive_as_they_are(started: Start) -> None:
    process = started("from micronet_lm.errors import RunError; raise RunError('too bad')")
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said.strip().splitlines()[-1]) == (1, "micronet: too bad")
    process = started("raise ZeroDivisionError('a bug')")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said.strip().splitlines()[-1].startswith("micronet: unexpected ZeroDivisionError: a bug")
    process = started("raise ZeroDivisionError('a bug')", MICRONET_DEBUG="1")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "in step" in said  # where it happened


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_asks_the_parent_to_stop_asks_the_stage(
    started: Start, tmp_path: Path, number: signal.Signals
) -> None:
    """It saves and says how to resume, and the run's bits equal those of one without a stop."""
    process = started(f"time.sleep(0.5); open({str(tmp_path / 'there')!r}, 'w'); time.sleep(1)")
    wait_for(tmp_path / "there")
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Stopping after this step" in said
    assert said.strip().endswith("Interrupted after step 3; the same command resumes.")
    if number is signal.SIGTERM:
        return
    again = started("pass")
    assert again.communicate(timeout=120)
    whole = started("pass", "--out", str(tmp_path / "whole"))
    assert whole.communicate(timeout=120)
    runs = [tmp_path / out / "teacher" / "last.safetensors" for out in ("out", "whole")]
    assert same_tensors(*runs)


def test_a_stage_dies_with_its_parent(started: Start, tmp_path: Path) -> None:
    place = tmp_path / "child"
    process = started(f"open({str(place)!r}, 'w').write(str(os.getpid())); time.sleep(100)")
    wait_for(place)
    time.sleep(0.1)
    child = int(place.read_text())
    assert child != process.pid
    process.kill()
    for _ in range(100):
        if not Path(f"/proc/{child}").exists():
            return
        if "\nState:\tZ" in Path(f"/proc/{child}/status").read_text():
            return  # dead; who adopted it has not looked yet
        time.sleep(0.1)
    pytest.fail("the stage outlived its parent")


def test_a_job_of_the_pool_that_dies_is_named_too(tmp_path: Path) -> None:
    """submitit alone would say only that there is no output."""

    def work(here: Path, inputs: object) -> dict[str, Any]:
        execute_illegal_instruction()
        return {}

    stage = Stage(name="student", folder="student", settings={}, work=work)
    threads = torch.get_num_threads()
    said = StageJob(Workspace(tmp_path, shared=True), stage, threads)()
    assert said is not None
    assert said.startswith("stage student was ended by SIGILL; ")
    assert "try --train.precision float32" in said


def wait_for(place: Path) -> None:
    for _ in range(600):
        if place.exists():
            return
        time.sleep(0.1)
    pytest.fail(f"{place} did not appear")
