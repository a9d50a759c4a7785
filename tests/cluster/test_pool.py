"""`micronet run --executor slurm` on a real cluster: jobs, requeues, lost parents and nodes."""

import json
import signal
from pathlib import Path

import pytest
from tests.support.cluster_jobs import (
    LIMITS,
    LONG,
    PRECISION,
    command,
    same_teacher,
    start,
    trained_here,
)
from tests.support.recipes import TINY, as_words, write_recipes
from tests.support.slurm import Cluster
from tests.support.waiting import wait_until

from micronet_lm.corpus import Corpus


@pytest.fixture(name="recipe", scope="module")
def _recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipes(tmp_path_factory.mktemp("recipes"))


def metrics_of(out: Path) -> str:
    file = out / "teacher" / "metrics.jsonl"
    return file.read_text() if file.exists() else ""


def test_a_whole_recipe_as_jobs_gives_the_same_bytes(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION]
    words += ["--constraint", "fast", "--setup", "export MARK=set", "--slurm", "comment=ours"]
    process = start(cluster, words, log)
    assert process.wait(500) == 0, log.read_text()
    trained_here(cluster, recipe, tmp_path / "here")
    name = "packed/model.safetensors"
    assert (out / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    said = log.read_text()
    assert "submitted as job" in said
    assert "up to 0.1 hours and 900M of memory" in said
    scripts = [file.read_text() for file in (out / "jobs").rglob("*_submission.sh")]
    assert all("--constraint=fast" in text and "--comment=ours" in text for text in scripts)
    assert any("--job-name=micronet-teacher-" in text for text in scripts)
    assert all("export MARK=set" in text for text in scripts)


def test_a_killed_parent_finds_its_job_again_and_a_warned_job_resumes(
    cluster: Cluster, recipe: Path, tmp_path: Path
) -> None:
    """The parent is killed; its job gets the signal of a time limit; the next parent waits."""
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *LONG]
    parent = start(cluster, words, log)
    wait_until(lambda: '"step": 20' in metrics_of(out), "steps", 240)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    (job,) = json.loads((out / "jobs" / "submitted.json").read_text()).values()
    assert not (out / "teacher" / "last.safetensors").exists()
    cluster.run(["scancel", "--signal=USR2", job])
    wait_until((out / "teacher" / "last.safetensors").exists, "a checkpoint")
    assert start(cluster, words, log).wait(400) == 0, log.read_text()
    assert f"job {job} was submitted before, and is kept" in log.read_text()
    assert int(cluster.job(job)["Restarts"]) == 1
    teachers = [file for file in (out / "jobs").rglob("*_submission.sh")
                if "micronet-teacher" in file.read_text()]  # fmt: skip
    assert len(teachers) == 1
    trained_here(cluster, recipe, tmp_path / "here", *LONG)
    same_teacher(out, tmp_path / "here")


def test_a_table_of_the_paper_is_reproduced_by_jobs(
    cluster: Cluster, tmp_path: Path, corpus: Corpus
) -> None:
    out, log = tmp_path / "tables", tmp_path / "log.txt"
    words = command("reproduce", {"wikitext-2": "demo"})
    words += ["--out", str(out), "--memory", "900M", "--corpus", str(corpus.path)]
    words += as_words(TINY)
    words += ["--corpus.source", corpus.manifest.source, "--corpus.tokenizer", "wikitext"]
    assert start(cluster, [*words, "--corpus.min_count", "1"], log).wait(500) == 0, log.read_text()
    table = (out / "tables" / "hebbian.md").read_text()
    assert "| Ours, no Hebbian | 39.5 |" in table
    assert len(list(out.glob("student-*/best.safetensors"))) == 4
    scripts = [f.read_text() for f in (out / "jobs").rglob("*_submission.sh")]
    assert sum("--job-name=micronet-student-" in text for text in scripts) >= 4
    assert all("--account=mylab" in text and "--time=720" in text for text in scripts)


def test_a_lost_node(cluster: Cluster, recipe: Path, tmp_path: Path) -> None:
    """The job's node dies, so it runs again elsewhere, and resumes to the same bits."""
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    more = ["--teacher.train.steps", "2000", "--teacher.train.save_every", "10"]
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *LONG, *more]
    parent = start(cluster, words, log)
    wait_until((out / "teacher" / "last.safetensors").exists, "a checkpoint", 240)
    (job,) = json.loads((out / "jobs" / "submitted.json").read_text()).values()
    victim = cluster.job(job)["NodeList"]
    cluster.kill(victim)
    assert '"step": 2000' not in metrics_of(out)
    cluster.start_node(victim)
    wait_until(lambda: log.read_text().count("runs on") >= 3, "a second start", 240)
    assert f"teacher {_fingerprint(out)}" in log.read_text()
    assert parent.wait(400) == 0, log.read_text()
    trained_here(cluster, recipe, tmp_path / "here", *LONG, *more)
    same_teacher(out, tmp_path / "here")
    wait_until(cluster.is_idle, "idle nodes", 240)


def test_a_cancelled_job(cluster: Cluster, recipe: Path, tmp_path: Path) -> None:
    """Nothing is submitted again, and the reason is one sentence."""
    out, log = tmp_path / "jobs", tmp_path / "log.txt"
    words = ["run", str(recipe), "--out", str(out), *LIMITS, *PRECISION, *LONG]
    words += ["--teacher.train.steps", "100000", "--teacher.train.save_every", "10"]
    parent = start(cluster, words, log)
    wait_until((out / "teacher" / "last.safetensors").exists, "a checkpoint", 240)
    (job,) = json.loads((out / "jobs" / "submitted.json").read_text()).values()
    cluster.run(["scancel", job])
    assert parent.wait(240) == 1
    assert f"job {job} has no result, because it was cancelled" in log.read_text()
    wait_until(cluster.is_idle, "idle nodes", 240)


def _fingerprint(out: Path) -> str:
    record = json.loads((out / "stages" / "teacher.json").read_text())
    return str(record["fingerprint"])[:12]
