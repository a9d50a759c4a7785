"""Stages of a pipeline on several nodes: `srun torchrun` under `micronet run --executor slurm`."""

import json
from pathlib import Path

import pytest
from tests.support.cluster_jobs import (
    INTERFACE,
    LIMITS,
    LONG,
    MICRONET,
    PRECISION,
    job_of,
    long_teacher_by_two,
    start,
)
from tests.support.processes import ROOT
from tests.support.recipes import write_recipes
from tests.support.runs import same_tensors
from tests.support.slurm import Cluster
from tests.support.waiting import wait_until

LAST = "last.safetensors"


@pytest.fixture(name="recipe", scope="module")
def _recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe that names what some of its stages ask for."""
    file = write_recipes(tmp_path_factory.mktemp("recipes"))
    asked = "cluster:\n  sensitivity: {nodes: 3, memory: 800M}\n  corpus: {hours: 0.2}\n"
    file.write_text(file.read_text() + asked)
    return file


def test_a_pipeline_with_stages_on_several_nodes(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    """What processes share by pieces has the bytes of one process; trainings those of two."""
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *INTERFACE]
    words += ["--nodes", "2", "--account", "mylab", "--qos", "high", "--jobs", "1"]
    assert start(cluster, words, log).wait(560) == 0, log.read_text()
    nodes = {"corpus": 1, "teacher": 2, "soft-labels": 2, "sensitivity": 3, "prune": 2, "pack": 1}
    asked = {name: cluster.job(job_of(out, name)) for name in nodes}
    assert {name: int(job["NumNodes"]) for name, job in asked.items()} == nodes
    assert asked["corpus"]["TimeLimit"] == "00:12:00"
    assert asked["teacher"]["TimeLimit"] == "00:05:00"
    assert asked["sensitivity"]["MinMemoryNode"] == "800M"
    assert {job["Account"] for job in asked.values()} == {"mylab"}
    script = next(out.glob("jobs/*/*_submission.sh")).read_text()
    assert "--qos=high" in script
    # The same labels and points from one process, and the same teacher from two on one host.
    here = tmp_path / "here"
    taken = ["--take", f"teacher={out / 'teacher'}", "--take", f"student={out / 'student'}"]
    one = [*MICRONET, "run", str(recipe), "--out", str(here), *PRECISION, *taken]
    done = cluster.run([*one, "--until", "sensitivity"], more={"PYTHONPATH": ROOT})
    assert done.returncode == 0, done.stderr
    assert (here / "sensitivity" / "points.jsonl").read_text() == (
        out / "sensitivity" / "points.jsonl"
    ).read_text()
    for file in sorted((here / "labels").glob("*.npy")):
        assert file.read_bytes() == (out / "labels" / file.name).read_bytes(), file.name
    long_teacher_by_two(recipe, out / "corpus", tmp_path / "two")
    assert same_tensors(out / "teacher" / LAST, tmp_path / "two" / LAST)


def test_a_warned_training_on_two_nodes_saves_and_resumes(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    """SIGUSR2 reaches every process of the job, torchrun's agents too; all end and run again."""
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *LONG, *INTERFACE]
    parent = start(cluster, [*words, "--nodes", "teacher=2"], log)
    metrics = out / "teacher" / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and '"step": 20' in metrics.read_text(), "steps", 240)
    (job,) = json.loads((out / "jobs" / "submitted.json").read_text()).values()
    assert not (out / "teacher" / LAST).exists()
    cluster.run(["scancel", "--signal=USR2", job])
    wait_until(lambda: cluster.job(job)["Restarts"] == "1", "a requeue", 120)
    assert (out / "teacher" / LAST).exists()
    cluster.hurry()
    assert parent.wait(400) == 0, log.read_text()
    assert cluster.job(job)["NumNodes"] == "2"
    long_teacher_by_two(recipe, out / "corpus", tmp_path / "two", *LONG[:-2])
    assert same_tensors(out / "teacher" / LAST, tmp_path / "two" / LAST)


def test_a_node_of_two_is_lost_and_the_stage_resumes(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *LONG, *INTERFACE]
    more = ["--teacher.train.steps", "200", "--teacher.train.save_every", "10"]
    parent = start(cluster, [*words, *more, "--nodes", "teacher=2", "--time", "20"], log)
    wait_until((out / "teacher" / LAST).exists, "a checkpoint", 240)
    (job,) = json.loads((out / "jobs" / "submitted.json").read_text()).values()
    victim = cluster.second_node(job)
    cluster.kill(victim)
    wait_until(lambda: "ended with a process was lost" in log.read_text(), "a sentence", 240)
    cluster.start_node(victim)
    assert parent.wait(400) == 0, log.read_text()
    (last,) = [n for n in (out / "jobs").glob("*") if n.name > job and n.is_dir()][-1:]
    assert cluster.job(last.name)["NumNodes"] == "2"
    long_teacher_by_two(recipe, out / "corpus", tmp_path / "two", *LONG[:-2], *more)
    assert same_tensors(out / "teacher" / LAST, tmp_path / "two" / LAST)
    wait_until(cluster.is_idle, "idle nodes", 120)
