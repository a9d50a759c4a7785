"""Real processes: one that is killed without warning, and two that train together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.training.conftest import overrides_as_words
from tests.training.test_loop import same_tensors

from micronet_lm.corpus import Corpus
from micronet_lm.training.metrics import read_metrics

ONE = [sys.executable, "-m", "micronet_lm"]
TWO = [
    *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
    *("-m", "micronet_lm"),
]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def command(out: Path, corpus: Corpus, *more: str, program: list[str] = ONE) -> list[str]:
    words = ["train", "demo", "--out", str(out), "--corpus", str(corpus.path)]
    return [*program, *words, *overrides_as_words(), *more]


def finish(words: list[str]) -> None:
    done = subprocess.run(
        words, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr


def steps_reported(out: Path) -> int:
    lines = read_metrics(out / "metrics.jsonl")
    return int(lines[-1]["step"]) if lines else 0


def kill_tree(pid: int) -> None:
    """Kill a process and its children, of which torchrun has one a worker."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for victim in (pid, *map(int, children)):
        os.kill(victim, signal.SIGKILL)


def train_lines(out: Path) -> list[dict[str, float]]:
    lines = read_metrics(out / "metrics.jsonl")
    return [line for line in lines if line["kind"] == "train"]


@pytest.mark.parametrize(("program", "sampling"), [(ONE, "random"), (TWO, "stream")])
def test_killed_twice_and_resumed_gives_the_same_bits(
    tmp_path: Path, corpus: Corpus, program: list[str], sampling: str
) -> None:
    more = ["--train.steps", "300", "--train.save_every", "17", "--train.evaluate_every", "50"]
    more += ["--model.dropout", "0.1", "--train.sampling", sampling]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(command(whole, corpus, *more, program=program))
    words = command(killed, corpus, *more, program=program)
    for at_least in (40, 180):
        process = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        deadline = time.monotonic() + 120
        while steps_reported(killed) < at_least and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert process.poll() is None, "finished before it could be killed"
        kill_tree(process.pid)
        process.wait()
        assert steps_reported(killed) < 300
    finish(words)
    assert same_tensors(whole / "last.safetensors", killed / "last.safetensors")
    assert same_tensors(whole / "best.safetensors", killed / "best.safetensors")
    losses = [[(line["step"], line["loss"]) for line in train_lines(r)] for r in (whole, killed)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("sampling", ["random", "stream"])
def test_two_processes_give_the_curve_of_one(tmp_path: Path, corpus: Corpus, sampling: str) -> None:
    more = ["--train.steps", "30", "--train.log_every", "1", "--train.precision", "float32"]
    more += ["--train.sampling", sampling]
    finish(command(tmp_path / "one", corpus, *more))
    finish(command(tmp_path / "two", corpus, *more, program=TWO))
    one, two = train_lines(tmp_path / "one"), train_lines(tmp_path / "two")
    assert len(one) == len(two) == 30
    for key in ("loss", "gradient_norm"):
        assert [v[key] for v in two] == pytest.approx([v[key] for v in one], rel=2e-3)
    assert two[0]["loss"] == pytest.approx(one[0]["loss"], rel=1e-6)
    assert one[-1]["loss"] < one[0]["loss"] - 0.3


def test_ctrl_c_at_the_command_line_says_how_to_go_on(tmp_path: Path, corpus: Corpus) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        command(out, corpus, "--train.steps", "100000"),
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    deadline = time.monotonic() + 120
    while steps_reported(out) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"Go on with: micronet train --resume {out}" in said
    assert "Traceback" not in said
    assert (out / "last.safetensors").is_file()
