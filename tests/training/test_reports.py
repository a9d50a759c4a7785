"""A run's reports: the progress line, and TensorBoard's files."""

import io
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.support.damage import SPOILED, spoil
from tests.support.recipes import tiny_recipe

from micronet_lm.corpus import Corpus
from micronet_lm.errors import RunError
from micronet_lm.training import Run, train
from micronet_lm.training.metrics import read_metrics
from micronet_lm.training.progress_line import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(name="clock")
def _clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_the_line_has_loss_perplexity_speed_and_time_left(clock: list[float]) -> None:
    out = Terminal()
    with ProgressLine(1000, out=out) as line:
        line.show(1, loss=2.0, tokens_per_second=1.0)
        clock[0] += 10
        line.show(11, loss=2.302585, tokens_per_second=12345.6)
    last = out.getvalue().split("\r\x1b[2K")[-1]
    # Ten steps took ten seconds: 989 are left.
    assert last == "step 11/1,000  loss 2.3026  perplexity 10.0  12,346 tokens/s  16:29 left\n"


def test_without_a_terminal_lines_are_rare_and_plain(clock: list[float]) -> None:
    out = io.StringIO()
    with ProgressLine(1000, out=out) as line:
        for step in range(1, 101):
            line.show(step, loss=1.0, tokens_per_second=1.0)
            clock[0] += 1.0
    lines = out.getvalue().splitlines()
    assert [text.split()[1] for text in lines] == ["1/1,000", "31/1,000", "61/1,000", "91/1,000"]
    assert "\x1b" not in out.getvalue()


def test_quiet_is_quiet(clock: list[float]) -> None:
    out = io.StringIO()
    with ProgressLine(2, quiet=True, out=out) as line:
        line.show(2, loss=1.0, tokens_per_second=1.0)
        line.say("hello")
    assert out.getvalue() == ""


def test_tensorboard_has_the_numbers_of_the_metrics(tmp_path: Path, corpus: Corpus) -> None:
    run = Run(tmp_path)
    train(run, tiny_recipe(corpus), corpus, quiet=True)
    lines = read_metrics(tmp_path / "metrics.jsonl")
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    for kind in ("train", "valid"):
        ours = [(line["step"], line["loss"]) for line in lines if line["kind"] == kind]
        theirs = [(event.step, event.value) for event in board.Scalars(f"{kind}/loss")]
        assert [step for step, _ in theirs] == [step for step, _ in ours]
        assert [v for _, v in theirs] == pytest.approx([v for _, v in ours], rel=1e-6)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("how", SPOILED)
def test_damaged_metrics_are_one_sentence(tmp_path: Path, how: str) -> None:
    """A pipe was taken for no metrics; a name that stands twice and NaN were accepted."""
    file = tmp_path / "metrics.jsonl"
    spoil(file, how)
    with pytest.raises(RunError, match=r"metrics\.jsonl is damaged .*move it away") as caught:
        read_metrics(file)
    assert SPOILED[how] in str(caught.value)


@pytest.mark.parametrize("line", ["3", "[1]", "{}", '{"kind": "train", "step": true}'])
def test_lines_that_no_run_writes_are_one_sentence(tmp_path: Path, line: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(line + "\n")
    with pytest.raises(RunError, match=r"metrics\.jsonl is damaged .*move it away"):
        read_metrics(tmp_path / "metrics.jsonl")
