"""A preemption by another partition, a full disk, and a network that is cut for five minutes."""

import json
import time
from pathlib import Path

import pytest
from tests.support.cluster_jobs import (
    INTERFACE,
    LIMITS,
    LONG,
    PRECISION,
    job_of,
    long_teacher_by_two,
    same_teacher,
    start,
    trained_here,
)
from tests.support.recipes import write_recipes
from tests.support.runs import same_tensors
from tests.support.slurm import Cluster, wait_for_end
from tests.support.waiting import wait_until

LAST = "last.safetensors"


@pytest.fixture(name="recipe", scope="module")
def _recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipes(tmp_path_factory.mktemp("recipes"))


def steps_of(out: Path) -> str:
    file = out / "teacher" / "metrics.jsonl"
    return file.read_text() if file.exists() else ""


def test_a_preemption_by_another_partition(cluster: Cluster, recipe: Path, tmp_path: Path) -> None:
    """An urgent job takes all nodes: the stage saves within the grace time, and resumes."""
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *LONG]
    parent = start(cluster, words, log)
    wait_until(lambda: '"step": 20' in steps_of(out), "steps", 240)
    assert not (out / "teacher" / LAST).exists()
    job = job_of(out, "teacher")
    urgent = ["sbatch", "--parsable", "--partition=urgent", "--nodes=3", "--exclusive"]
    done = cluster.run(
        [*urgent, "--time=1", f"--output={tmp_path / 'urgent'}", "--wrap", "sleep 5"]
    )
    assert done.returncode == 0, done.stderr
    wait_until((out / "teacher" / LAST).exists, "a checkpoint", 120)
    assert wait_for_end(cluster, done.stdout.strip())["JobState"] == "COMPLETED"
    assert parent.wait(400) == 0, log.read_text()
    assert f"job {job} ended with a request to stop, so it resumes" in log.read_text()
    assert cluster.job(job)["PreemptTime"] != "None"
    trained_here(cluster, recipe, tmp_path / "here", *LONG)
    same_teacher(out, tmp_path / "here")


def test_a_full_disk_is_the_reason_that_is_told(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    """A job that cannot even write its result names the disk; with room, the stage resumes."""
    out, log = cluster.disk / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *LONG]
    words += ["--teacher.train.save_every", "100"]
    parent = start(cluster, words, log)
    wait_until(lambda: '"step": 20' in steps_of(out), "steps", 240)
    filler = cluster.disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass
    assert parent.wait(240) == 1, log.read_text()
    said = log.read_text()
    assert "Traceback" not in said
    assert "free disk space" in said.splitlines()[-1]
    filler.unlink()
    assert start(cluster, words, log).wait(400) == 0, log.read_text()
    trained_here(cluster, recipe, tmp_path / "here", *LONG, "--teacher.train.save_every", "100")
    same_teacher(out, tmp_path / "here")


def test_a_network_that_is_cut_for_five_minutes(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    """The cluster gives the node up, and the stage resumes with nodes that can be reached."""
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *LONG, *INTERFACE]
    more = ["--teacher.train.steps", "200", "--teacher.train.save_every", "10"]
    parent = start(cluster, [*words, *more, "--nodes", "teacher=2", "--time", "20"], log)
    wait_until((out / "teacher" / LAST).exists, "a checkpoint", 240)
    (job,) = json.loads((out / "jobs" / "submitted.json").read_text()).values()
    victim = cluster.second_node(job)
    cluster.cut(victim)
    end = time.monotonic() + 300
    while time.monotonic() < end:
        cluster.hurry()
        time.sleep(5)
    cluster.mend(victim)
    while parent.poll() is None and time.monotonic() < end + 400:
        cluster.hurry()
        time.sleep(2)
    assert parent.wait(1) == 0, log.read_text()
    long_teacher_by_two(recipe, out / "corpus", tmp_path / "two", *LONG[:-2], *more)
    assert same_tensors(out / "teacher" / LAST, tmp_path / "two" / LAST)
    wait_until(cluster.is_idle, "idle nodes", 240)
