"""What the tests on a cluster do: submit trainings and pipelines, and compare what they give."""

import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT, TWO, finish, train_command
from tests.support.runs import same_tensors
from tests.support.slurm import Cluster

from micronet_lm.corpus import Corpus

MICRONET = [sys.executable, "-m", "micronet_lm"]
LIMITS = ["--executor", "slurm", "--time", "5", "--memory", "900M"]
LONG = ["--teacher.train.steps", "400", "--teacher.train.save_every", "400"]
LONG += ["--teacher.train.evaluate_every", "400", "--until", "teacher"]
PRECISION = ["--teacher.train.precision", "float32", "--train.precision", "float32"]

SCRIPT = """#!/bin/bash
#SBATCH --nodes={nodes} --ntasks-per-node=1 --time=10 --output={log} --open-mode=append
export PYTHONPATH={root} OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0
first=$(scontrol show hostnames | head -1)
srun --kill-on-bad-exit=1 {python} -m torch.distributed.run \\
    --nnodes={nodes} --nproc-per-node={each} \\
    --rdzv-backend=c10d --rdzv-endpoint="$first":29400 --rdzv-id="$SLURM_JOB_ID" \\
    -m micronet_lm {words}
"""

TINY = ["--train.sampling", "stream", "--cache.size", "60", "--model.dropout", "0.1"]


def submit(
    cluster: Cluster, place: Path, words: list[str], *, nodes: int = 2, each: int = 1
) -> str:
    """Submit a verb under torchrun; return the job's number."""
    script, log = place / "job.sh", place / "log.txt"
    text = SCRIPT.format(
        nodes=nodes, each=each, log=log, root=ROOT, python=sys.executable, words=" ".join(words)
    )
    script.write_text(text)
    done = cluster.run(["sbatch", "--parsable", str(script)])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def trained_by_two(out: Path, corpus: Corpus, *more: str) -> None:
    """Train with two processes on this machine, outside the cluster."""
    finish(train_command(out, corpus, *more, program=TWO))


def start(cluster: Cluster, words: list[str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("ab") as out:
        return subprocess.Popen(
            [*MICRONET, *words],
            stdout=out,
            stderr=out,
            env={**cluster.environment, "PYTHONPATH": ROOT},
        )


def trained_here(cluster: Cluster, recipe: Path, out: Path, *more: str) -> None:
    words = [*MICRONET, "run", str(recipe), "--out", str(out), *PRECISION, *more]
    done = cluster.run(words, more={"PYTHONPATH": ROOT})
    assert done.returncode == 0, done.stderr


def same_teacher(one: Path, other: Path) -> None:
    """Check that two pipelines have teachers of the same bits."""
    for name in ("last.safetensors", "best.safetensors"):
        assert same_tensors(one / "teacher" / name, other / "teacher" / name)
