"""A network that is cut, a controller that dies, and a time limit that strikes."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.cluster_jobs import (
    LIMITS,
    LONG,
    PRECISION,
    TINY,
    job_of,
    same_teacher,
    start,
    submit,
    trained_by_two,
    trained_here,
)
from tests.support.processes import train_command
from tests.support.recipes import write_recipes
from tests.support.runs import same_tensors
from tests.support.slurm import Cluster, wait_for_end
from tests.support.waiting import wait_until

from micronet_lm.corpus import Corpus


@pytest.fixture(name="recipe", scope="module")
def _recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipes(tmp_path_factory.mktemp("recipes"))


def test_a_network_that_is_cut_for_twenty_seconds(
    cluster: Cluster, tmp_path: Path, corpus: Corpus
) -> None:
    """The connections outlive it: the training waits, and ends with the same bits."""
    more = [*TINY, "--train.steps", "150"]
    out = tmp_path / "nodes"
    job = submit(cluster, tmp_path, train_command(out, corpus, *more, program=[]))
    metrics = out / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and '"step": 6' in metrics.read_text(), "steps", 240)
    second = cluster.second_node(job)
    cluster.cut(second)
    time.sleep(20)
    cluster.mend(second)
    ended = wait_for_end(cluster, job)
    assert ended["JobState"] == "COMPLETED", (tmp_path / "log.txt").read_text()
    trained_by_two(tmp_path / "here", corpus, *more)
    assert same_tensors(out / "last.safetensors", tmp_path / "here" / "last.safetensors")


def test_a_controller_that_dies_is_waited_for(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    limits = ["--executor", "slurm", "--time", "5", "--memory", "900M"]
    parent = start(
        cluster, ["run", str(recipe), "--out", str(out), *limits, *PRECISION, *LONG], log
    )
    wait_until((out / "teacher" / "metrics.jsonl").exists, "a training", 240)
    cluster.kill("slurmctld")
    wait_until(lambda: "The cluster does not answer" in log.read_text(), "the parent's sentence")
    cluster.start_controller()
    assert parent.wait(300) == 0, log.read_text()
    trained_here(cluster, recipe, tmp_path / "here", *LONG)
    same_teacher(out, tmp_path / "here")


def warned(job: dict[str, str]) -> bool:
    """Return whether a job of one minute was warned 30 seconds before its end."""
    return job["Restarts"] != "0" or job["RunTime"] > "00:00:40"


def test_a_time_limit_that_strikes(cluster: Cluster, recipe: Path, tmp_path: Path) -> None:
    """Jobs of one minute, warned before their end: the stage goes on in the next one.

    On a fast machine the training would end before that: it is held until the warning has come.
    """
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    more = [*LONG, "--teacher.train.steps", "500"]
    words = ["run", str(recipe), "--out", str(out), *PRECISION, *more]
    words += [*LIMITS, "--time", "teacher=1", "--slurm", "signal=USR2@30"]
    parent = start(cluster, words, log)
    metrics = out / "teacher" / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and '"step": 20' in metrics.read_text(), "steps", 240)
    job = job_of(out, "teacher")
    held = cluster.stages_of(job)
    for pid in held:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: warned(cluster.job(job)), "the time of the warning", 240)
    for pid in held:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    end = time.monotonic() + 500
    while parent.poll() is None and time.monotonic() < end:
        cluster.hurry()
        time.sleep(1)
    assert parent.wait(1) == 0, log.read_text()
    scripts = [f for f in (out / "jobs").rglob("*_submission.sh") if "teacher" in f.read_text()]
    restarts = [int(cluster.job(f.parent.name)["Restarts"]) for f in scripts]
    assert sum(restarts) + len(scripts) > 1, restarts
    trained_here(cluster, recipe, tmp_path / "here", *more)
    same_teacher(out, tmp_path / "here")
