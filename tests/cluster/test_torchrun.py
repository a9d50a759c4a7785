"""Trainings on several nodes of a real cluster, by sbatch and torchrun as in docs/cluster.md."""

from pathlib import Path

from tests.support.cluster_jobs import TINY, documented_script, submit, trained_by_two
from tests.support.processes import train_command
from tests.support.runs import same_tensors
from tests.support.slurm import Cluster, wait_for_end
from tests.support.waiting import wait_until

from micronet_lm.corpus import Corpus


def test_two_nodes_give_the_bits_of_two_processes(
    cluster: Cluster, tmp_path: Path, corpus: Corpus
) -> None:
    words = train_command(tmp_path / "nodes", corpus, *TINY, program=[])
    ended = wait_for_end(cluster, submit(cluster, tmp_path, words))
    assert ended["JobState"] == "COMPLETED", (tmp_path / "log.txt").read_text()
    trained_by_two(tmp_path / "here", corpus, *TINY)
    last = "last.safetensors"
    assert same_tensors(tmp_path / "nodes" / last, tmp_path / "here" / last)


def test_scancel_saves(cluster: Cluster, tmp_path: Path, corpus: Corpus) -> None:
    """SIGTERM comes from SLURM and from torchrun's agent; the step in hand is saved."""
    out = tmp_path / "run"
    more = ["--train.steps", "100000", "--train.save_every", "99999"]
    more += ["--train.evaluate_every", "99999"]
    job = submit(cluster, tmp_path, train_command(out, corpus, *TINY, *more, program=[]), each=2)
    metrics = out / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and '"step": 4' in metrics.read_text(), "steps", 240)
    assert not (out / "last.safetensors").exists()
    cluster.run(["scancel", job])
    wait_until((out / "last.safetensors").exists, "a checkpoint")
    wait_for_end(cluster, job)
    log = (tmp_path / "log.txt").read_text()
    assert "Interrupted and saved after step" in log, log
    assert "/src/micronet_lm/" not in log, log  # torchrun's own tracebacks are not ours


def test_a_dead_node_is_a_sentence_in_every_process(
    cluster: Cluster, tmp_path: Path, corpus: Corpus
) -> None:
    """All that runs on the second node is killed; the first one says so, and the job resumes.

    The result is that of two processes that nobody disturbed.
    """
    out = tmp_path / "run"
    more = [*TINY, "--train.steps", "400", "--train.save_every", "5"]
    more += ["--train.evaluate_every", "400"]
    job = submit(cluster, tmp_path, train_command(out, corpus, *more, program=[]))
    wait_until((out / "last.safetensors").exists, "a checkpoint", 240)
    first, victim = cluster.job(job)["BatchHost"], cluster.second_node(job)
    cluster.kill(victim)
    log = tmp_path / "log.txt"
    wait_until(
        lambda: "another process ended or cannot be reached" in log.read_text(), "a sentence"
    )
    wait_until(lambda: cluster.job(job)["Restarts"] == "1", "a requeue", 240)
    wait_until(lambda: cluster.is_free(first), "the end of the first start", 240)
    cluster.start_node(victim)
    cluster.hurry()
    wait_until(lambda: "resuming after step" in log.read_text(), "a second start", 240)
    ended = wait_for_end(cluster, job)
    assert ended["JobState"] == "COMPLETED", log.read_text()
    trained_by_two(tmp_path / "here", corpus, *more)
    assert same_tensors(out / "last.safetensors", tmp_path / "here" / "last.safetensors")
    wait_until(cluster.is_idle, "idle nodes", 240)


def test_the_script_of_the_documentation_saves_when_warned(
    cluster: Cluster, tmp_path: Path, corpus: Corpus
) -> None:
    """SIGUSR1, which SLURM sends before the time limit: the training saves, and continues."""
    out, log = tmp_path / "run", tmp_path / "teacher.log"
    more = ["--train.steps", "100000", "--train.save_every", "99999"]
    more += ["--train.evaluate_every", "99999", "--train.log_every", "1"]
    words = train_command(out, corpus, *TINY, *more, program=[])
    script = documented_script(" ".join(words), mem="900M", log=str(log))
    (tmp_path / "job.sh").write_text(script)
    done = cluster.run(["sbatch", "--parsable", str(tmp_path / "job.sh")])
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    metrics = out / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and '"step": 4' in metrics.read_text(), "steps", 240)
    assert not (out / "last.safetensors").exists()
    cluster.run(["scancel", "--signal=USR1", job])
    wait_until((out / "last.safetensors").exists, "a checkpoint", 120)
    known = metrics.read_text().count("\n")
    wait_until(lambda: metrics.read_text().count("\n") > known + 3, "more steps", 120)
    facts = cluster.job(job)
    assert (facts["JobState"], facts["NumNodes"]) == ("RUNNING", "2"), log.read_text()
    cluster.run(["scancel", job])
    wait_for_end(cluster, job)
    assert "Interrupted and saved after step" in log.read_text()
