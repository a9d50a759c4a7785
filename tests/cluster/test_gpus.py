"""Jobs that ask for GPUs: SLURM counts pretended ones, which no process can use."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.support.cluster_jobs import (
    LIMITS,
    LONG,
    PRECISION,
    long_teacher_by_two,
    start,
    worker_of,
)
from tests.support.recipes import write_recipes
from tests.support.runs import same_tensors
from tests.support.slurm import Cluster
from tests.support.waiting import wait_until

LAST = "last.safetensors"


@pytest.fixture(name="recipe", scope="module")
def _recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipes(tmp_path_factory.mktemp("recipes"))


def test_a_process_per_gpu_and_a_worker_that_is_killed(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    """One of two workers is killed: the other one says so, and the stage resumes in a new job."""
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *LONG]
    more = ["--teacher.train.steps", "200", "--teacher.train.save_every", "10"]
    parent = start(cluster, [*words, *more, "--gpus", "teacher=2"], log)
    wait_until((out / "teacher" / LAST).exists, "a checkpoint", 240)
    (job,) = json.loads((out / "jobs" / "submitted.json").read_text()).values()
    facts = cluster.job(job)
    assert facts["TresPerNode"] in ("gres:gpu:2", "gpu:2"), facts
    victim = worker_of(cluster, facts["NodeList"], 1)
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: "ended with a process was lost" in log.read_text(), "a sentence", 240)
    assert parent.wait(400) == 0, log.read_text()
    long_teacher_by_two(recipe, out / "corpus", tmp_path / "two", *LONG[:-2], *more)
    assert same_tensors(out / "teacher" / LAST, tmp_path / "two" / LAST)
