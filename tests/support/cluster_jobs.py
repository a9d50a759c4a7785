"""What the tests on a cluster do: submit trainings and pipelines, and compare what they give."""

import subprocess
import sys
from collections.abc import Mapping
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

INTERFACE = ["--setup", "export GLOO_SOCKET_IFNAME=eth0"]
"""Which network the processes of a job use; a node here has eth0 and the loopback."""

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


def page() -> str:
    """Return docs/cluster.md."""
    return (Path(ROOT) / "docs" / "cluster.md").read_text(encoding="utf-8")


def changed(text: str, changes: Mapping[str, str]) -> str:
    """Return text of the page with changes, each of which it must have something for."""
    for before, after in changes.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def command(verb: str, changes: Mapping[str, str], number: int = 0) -> list[str]:
    """Return the words after `micronet` of the page's command with a verb, changed."""
    lines = [line for line in page().splitlines() if line.startswith(f"micronet {verb} ")]
    return changed(lines[number], changes).split()[1:]


def documented_script(words: str, *, mem: str, log: str) -> str:
    """Return the script of docs/cluster.md with other words after micronet_lm, and less memory."""
    changes = {
        "train wikitext-2/teacher --corpus data/wikitext-2 --out runs/teacher": words,
        "--mem=16G": f"--mem={mem}",
        "--output=teacher.log": f"--output={log}",
        "OMP_NUM_THREADS=4": "OMP_NUM_THREADS=1",
    }
    return changed(page().split("```bash\n")[1].split("```")[0], changes)


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


def long_teacher_by_two(recipe: Path, corpus: Path, out: Path, *more: str) -> None:
    """Train a recipe's teacher with two processes on this machine, outside the cluster."""
    own = [word.replace("--teacher.", "--") for word in more]
    words = ["train", str(recipe.with_name("teacher.yaml")), "--corpus", str(corpus)]
    given = ["--out", str(out), "--train.precision", "float32", *own]
    finish([*TWO, *words, *given], patience=900)


def job_of(out: Path, stage: str) -> str:
    """Return the number of a stage's last job."""
    scripts = (out / "jobs").glob("*/*_submission.sh")
    found = [f for f in scripts if f"--job-name=micronet-{stage}-" in f.read_text()]
    return max(found, key=lambda file: int(file.parent.name)).parent.name


def worker_of(cluster: Cluster, node: str, rank: int) -> int | None:
    """Return the process of a training on a node that has a rank."""
    for pid in cluster.processes_of(node):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            given = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"micronet_lm.pipeline.together" in words and b"RANK=%d" % rank in given:
            return pid
    return None


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
    done = cluster.run(words, more={"PYTHONPATH": ROOT}, timeout=900)
    assert done.returncode == 0, done.stderr


def same_teacher(one: Path, other: Path) -> None:
    """Check that two pipelines have teachers of the same bits."""
    for name in ("last.safetensors", "best.safetensors"):
        assert same_tensors(one / "teacher" / name, other / "teacher" / name)
