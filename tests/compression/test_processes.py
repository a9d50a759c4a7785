"""Real processes: a writer that is killed, two writers, and a student on two processes."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.processes import CACHE, ENVIRONMENT, ONE, TWO, finish
from tests.support.recipes import TINY, as_words, tiny_recipe
from tests.support.runs import train_lines

from micronet_lm.corpus import Corpus
from micronet_lm.training import Run, train

KINDS = {"top-k": ["--top-k", "9"], "sampled": ["--samples", "7", "--seed", "3"]}

KILLED = """
import os, signal, sys
import micronet_lm.compression.softlabels.writer as writer
from micronet_lm.cli.main import main
from micronet_lm.files import replacing

real, calls = writer.write_shard, []

def write_shard(folder, number, values, **more):
    calls.append(number)
    if len(calls) == 4:
        with replacing(folder / f"{number:05}.ids.npy") as temporary:
            temporary.write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
    real(folder, number, values, **more)

writer.write_shard = write_shard
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module", name="teacher_run")
def _teacher_run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("runs") / "teacher")
    recipe = tiny_recipe(corpus, cache__size=90, train__steps=30, train__evaluate_every=30)
    train(run, recipe, corpus, quiet=True)
    return run


def command(run: Run, out: Path, *more: str, program: list[str] = ONE) -> list[str]:
    words = ["soft-labels", str(run.path), "--out", str(out), "--shard-tokens", "400", *more]
    return [*program, *words]


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.mark.parametrize("kind", KINDS)
def test_killed_and_resumed_gives_the_same_bytes(
    tmp_path: Path, teacher_run: Run, kind: str
) -> None:
    """SIGKILL in the middle of the fourth shard; the first three are not computed again."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(command(teacher_run, whole, *KINDS[kind]))
    dead = subprocess.run(
        command(teacher_run, killed, *KINDS[kind], program=[sys.executable, "-c", KILLED]),
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert dead.returncode == -signal.SIGKILL
    assert len(list(killed.glob(".*.tmp"))) == 1
    kept = {file: file.stat().st_mtime_ns for file in killed.glob("0000[012].*")}
    assert len(kept) == (9 if kind == "top-k" else 6)
    assert not (killed / "00003.json").exists()
    finish(command(teacher_run, killed, *KINDS[kind]))
    assert contents(killed) == contents(whole)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept


@pytest.mark.parametrize("kind", KINDS)
def test_two_writers_equal_one(tmp_path: Path, teacher_run: Run, kind: str) -> None:
    finish(command(teacher_run, tmp_path / "one", *KINDS[kind]))
    finish(command(teacher_run, tmp_path / "two", *KINDS[kind], program=TWO))
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert len(contents(tmp_path / "one")) > 20


def test_a_student_on_two_processes_has_the_curve_of_one(
    tmp_path: Path, teacher_run: Run, corpus: Corpus
) -> None:
    labels = tmp_path / "labels"
    finish(command(teacher_run, labels, *KINDS["top-k"]))
    words = ["distill", "demo", "--labels", str(labels), "--corpus", str(corpus.path)]
    words += [*as_words(TINY), *CACHE, "--distill.top_k", "9", "--train.log_every", "1"]
    words += ["--train.precision", "float32", "--out"]
    finish([*ONE, *words, str(tmp_path / "one")])
    finish([*TWO, *words, str(tmp_path / "two")])
    one, two = train_lines(tmp_path / "one"), train_lines(tmp_path / "two")
    assert len(one) == len(two) == 12
    for key in ("loss", "hard_loss", "soft_loss", "soft_weight", "gradient_norm"):
        assert [v[key] for v in two] == pytest.approx([v[key] for v in one], rel=2e-3)
    assert two[0]["soft_loss"] == pytest.approx(one[0]["soft_loss"], rel=1e-6)
    # The run knows where its labels are.
    finish([*ONE, "distill", "--resume", str(tmp_path / "one"), "--train.steps", "14"])
    assert len(train_lines(tmp_path / "one")) == 14
