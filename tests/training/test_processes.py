"""Real processes: one that is killed without warning, and two that train together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tests.support.processes import CACHE, ENVIRONMENT, ONE, TORCHRUN, TWO, finish, train_command
from tests.support.runs import same_tensors, train_lines

from micronet_lm.corpus import Corpus
from micronet_lm.errors import UsageError
from micronet_lm.training import Run, processes
from micronet_lm.training.checkpoint import read_checkpoint
from micronet_lm.training.metrics import read_metrics
from micronet_lm.training.processes import TIMEOUT_MINUTES, TIMEOUT_VARIABLE

HEBBIAN = ["--hebbian.gamma", "0.05", "--hebbian.limit", "200"]


def steps_reported(out: Path) -> int:
    lines = read_metrics(out / "metrics.jsonl")
    return int(lines[-1]["step"]) if lines else 0


def kill_tree(pid: int) -> None:
    """Kill a process and its children, of which torchrun has one a worker."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for victim in (pid, *map(int, children)):
        os.kill(victim, signal.SIGKILL)


STOPPING = """
import os, signal, sys
from micronet_lm.cli.main import main
from micronet_lm.training.hebbian import Hebbian

real = Hebbian.after_step

def after_step(self, model, hidden, batch):
    if batch.step == int(os.environ["STOPPED_AT"]):
        os.kill(os.getpid(), signal.SIGSTOP)
    real(self, model, hidden, batch)

Hebbian.after_step = after_step
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("program", "sampling"), [(ONE, "random"), (TWO, "stream")])
def test_killed_twice_and_resumed_gives_the_same_bits(
    tmp_path: Path, corpus: Corpus, program: list[str], sampling: str
) -> None:
    """The processes stop by themselves, so that none is finished before it is killed."""
    more = ["--train.steps", "90", "--train.save_every", "17", "--train.evaluate_every", "20"]
    more += ["--model.dropout", "0.1", "--train.sampling", sampling, *CACHE, *HEBBIAN]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(train_command(whole, corpus, *more, program=program))
    words = train_command(killed, corpus, *more, program=program)
    script = tmp_path / "stopping.py"
    script.write_text(STOPPING)
    stopping = train_command(killed, corpus, *more, program=[*program[:-2], str(script)])
    for stopped_at in (42, 76):
        environment = {**ENVIRONMENT, "STOPPED_AT": str(stopped_at)}
        process = subprocess.Popen(stopping, stderr=subprocess.DEVNULL, env=environment)
        deadline = time.monotonic() + 200
        while steps_reported(killed) < stopped_at:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        kill_tree(process.pid)
        process.wait()
        assert 0 < read_checkpoint(killed / "last.safetensors").progress.step < stopped_at
    finish(words)
    assert same_tensors(whole / "last.safetensors", killed / "last.safetensors")
    assert same_tensors(whole / "best.safetensors", killed / "best.safetensors")
    losses = [[(line["step"], line["loss"]) for line in train_lines(r)] for r in (whole, killed)]
    assert losses[0] == losses[1]


# Two sums in another order differ in the last bit, and training makes differences grow: faster with
# streams, which carry keys of older weights along. Low rates keep the curves comparable.
@pytest.mark.parametrize(
    ("sampling", "rate", "tolerance"), [("random", "0.01", 2e-3), ("stream", "0.003", 2e-4)]
)
def test_two_processes_give_the_curve_of_one(
    tmp_path: Path, corpus: Corpus, sampling: str, rate: str, tolerance: float
) -> None:
    more = ["--train.steps", "30", "--train.log_every", "1"]
    more += ["--train.sampling", sampling, "--train.learning_rate", rate]
    more += [*CACHE, *HEBBIAN]
    finish(train_command(tmp_path / "one", corpus, *more))
    finish(train_command(tmp_path / "two", corpus, *more, program=TWO))
    one, two = train_lines(tmp_path / "one"), train_lines(tmp_path / "two")
    assert len(one) == len(two) == 30
    for key in ("loss", "gradient_norm"):
        assert [v[key] for v in two] == pytest.approx([v[key] for v in one], rel=tolerance)
    assert two[0]["loss"] == pytest.approx(one[0]["loss"], rel=1e-6)
    # Words were seen as often, however they were spread.
    files = [tmp_path / name / "last.safetensors" for name in ("one", "two")]
    assert torch.equal(*(read_checkpoint(f).tensors["plugin.hebbian.seen"] for f in files))
    # The curve is no flat line: it moves by much more than the tolerance.
    losses = [line["loss"] for line in one]
    assert max(losses) - min(losses) > 0.1


def test_ctrl_c_at_the_command_line_says_how_to_go_on(tmp_path: Path, corpus: Corpus) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        train_command(out, corpus, "--train.steps", "100000"),
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    deadline = time.monotonic() + 200
    while steps_reported(out) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"Resume with: micronet train --resume {out}" in said
    assert "Traceback" not in said
    assert (out / "last.safetensors").is_file()


def test_killed_in_the_middle_of_a_save(tmp_path: Path, corpus: Corpus) -> None:
    """The process writes half of its third checkpoint and is killed by SIGKILL."""
    script = """
import os, signal, sys
import micronet_lm.training.checkpoint as checkpoint
from micronet_lm.cli.main import main

real, calls = checkpoint.save_file, []

def save_file(tensors, path, metadata):
    real(tensors, path, metadata=metadata)
    calls.append(path)
    if len(calls) == 3:
        os.truncate(path, os.path.getsize(path) // 2)
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.save_file = save_file
sys.exit(main(sys.argv[1:]))
"""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(train_command(whole, corpus))
    program = [sys.executable, "-c", script]
    dead = subprocess.run(
        train_command(killed, corpus, program=program),
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert dead.returncode == -signal.SIGKILL
    assert len(list(killed.glob(".*.tmp"))) == 1
    finish(train_command(killed, corpus))
    assert same_tensors(whole / "last.safetensors", killed / "last.safetensors")
    assert same_tensors(whole / "best.safetensors", killed / "best.safetensors")
    assert list(killed.glob(".*.tmp")) == []


def test_one_may_go_on_with_what_two_began(tmp_path: Path, corpus: Corpus) -> None:
    """A checkpoint does not tell how many processes or parts made it."""
    more = ["--train.sampling", "stream", "--train.log_every", "1", *CACHE, *HEBBIAN]
    # A constant rate, so that the schedule of 12 steps is the beginning of that of 20.
    more += ["--train.learning_rate", "0.003", "--train.final_learning_rate", "0.003"]
    finish(train_command(tmp_path / "one", corpus, *more, "--train.steps", "20"))
    finish(train_command(tmp_path / "both", corpus, *more, "--train.accumulate", "2", program=TWO))
    resume = ["train", "--resume", str(tmp_path / "both"), "--train.steps", "20"]
    finish([*ONE, *resume, "--train.accumulate", "1"])
    one, both = train_lines(tmp_path / "one"), train_lines(tmp_path / "both")
    assert [v["step"] for v in both] == [v["step"] for v in one]
    assert both[0]["loss"] == pytest.approx(one[0]["loss"], rel=1e-6)
    assert [v["loss"] for v in both] == pytest.approx([v["loss"] for v in one], rel=2e-4)


def test_when_the_leader_fails_the_others_say_one_sentence(tmp_path: Path, corpus: Corpus) -> None:
    run = Run(tmp_path / "run")
    with run.locked():
        done = subprocess.run(
            train_command(run.path, corpus, program=TWO),
            capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=200,
        )  # fmt: skip
    assert done.returncode != 0
    ours = [line for line in done.stderr.splitlines() if line.startswith("micronet")]
    assert any("another process is training in" in line for line in ours)
    assert "/micronet_lm/" not in done.stderr, done.stderr  # torchrun's own traceback is not ours


def test_the_hebbian_update_is_the_same_on_all_processes_and_on_one(tmp_path: Path) -> None:
    """Each process has its own activations; afterwards all rows and counters are equal bits."""
    script = tmp_path / "script.py"
    script.write_text("""
import torch
from tests.support.shapes import TWO_BINS
from micronet_lm.config import HebbianConfig
from micronet_lm.model import LanguageModel
from micronet_lm.training import Batch
from micronet_lm.training.hebbian import Hebbian
from micronet_lm.training.processes import Processes, joined_processes

def updated(processes, rows):
    torch.manual_seed(0)
    model, plugin = LanguageModel(TWO_BINS), Hebbian(HebbianConfig())
    plugin.prepare(model, processes)
    for step in range(5):
        hidden, targets = torch.randn(4, 50, 16)[rows], torch.randint(60, (4, 50))[rows]
        batch = Batch(inputs=targets, targets=targets, starts=torch.zeros(len(targets)).long(),
                      step=step, fresh=True)
        plugin.after_step(model, hidden, batch)
    return [*model.tables, plugin.tensors()["seen"]]

with joined_processes() as processes:
    assert processes.count == 2
    own = updated(processes, slice(2 * processes.rank, 2 * processes.rank + 2))
    alone = updated(Processes(rank=0, count=1, device=processes.device), slice(0, 4))
    for ours, theirs in zip(own, alone):
        assert torch.equal(ours, theirs)
        everybody = processes.gather(ours.detach()[None])
        assert torch.equal(everybody[0], everybody[1])
""")
    finish([*TORCHRUN, str(script)])


def test_a_process_that_does_not_answer_is_waited_for_as_long_as_asked(tmp_path: Path) -> None:
    """The second process hangs: the first one says so after the time of the variable."""
    script = tmp_path / "script.py"
    script.write_text("""
import os, sys, time
from pathlib import Path
from micronet_lm.errors import RunError
from micronet_lm.training.processes import joined_processes

said, rank = Path(sys.argv[1]), int(os.environ["RANK"])
said.with_suffix(f".{rank}").touch()
while not said.with_suffix(f".{1 - rank}").exists():  # only the hang may take long
    time.sleep(0.05)
try:
    with joined_processes() as processes:
        if rank == 1:
            while not said.exists():
                time.sleep(0.05)
        processes.wait()
except RunError as error:
    if rank == 0:
        said.write_text(str(error))
""")
    said = tmp_path / "said"
    subprocess.run(
        [*TORCHRUN, str(script), str(said)],
        capture_output=True,
        env={**ENVIRONMENT, TIMEOUT_VARIABLE: "0.1"},
        check=False,
        timeout=200,
    )
    assert said.read_text().startswith("another process ended or cannot be reached any more (")
    assert "the same command resumes from what was saved" in said.read_text()


def test_processes_wait_for_hours_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TIMEOUT_VARIABLE, raising=False)
    assert processes.timeout_minutes() == TIMEOUT_MINUTES >= 60
    monkeypatch.setenv(TIMEOUT_VARIABLE, "600")
    assert processes.timeout_minutes() == 600
    for wrong in ("soon", "0", "-1", "nan", "1e9"):
        monkeypatch.setenv(TIMEOUT_VARIABLE, wrong)
        with pytest.raises(UsageError, match=f"minutes above 0, got {wrong}"):
            processes.timeout_minutes()
