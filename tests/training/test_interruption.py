"""Signals to a training: what saves, what stops, and that two signals of one cause count as one."""

import os
import signal
from pathlib import Path

import pytest
from tests.support.recipes import tiny_recipe
from tests.support.runs import same_tensors
from torch import Tensor

from micronet_lm.corpus import Corpus
from micronet_lm.model import LanguageModel
from micronet_lm.training import Batch, Plugin, Run, interruption, train
from micronet_lm.training.interruption import deferred_interruption


class Sending(Plugin):
    """Sends signals to this process after a step, and notes which step the last checkpoint has."""

    def __init__(self, run: Run, step: int, *numbers: int) -> None:
        self._run, self._step, self._numbers = run, step, numbers
        self.saved: dict[int, int | None] = {}

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        there = self._run.last.is_file()
        self.saved[batch.step] = self._run.progress("last").step if there else None
        if batch.step == self._step:
            for number in self._numbers:
                os.kill(os.getpid(), number)


RARELY = {"train__save_every": 1000, "train__evaluate_every": 1000}


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_a_warning_saves_and_the_training_goes_on(
    tmp_path: Path, corpus: Corpus, number: int
) -> None:
    recipe = tiny_recipe(corpus, **RARELY)
    train(Run(tmp_path / "plain"), recipe, corpus, quiet=True)
    run = Run(tmp_path / "warned")
    sending = Sending(run, 4, number)
    assert train(run, recipe, corpus, plugins=[sending], quiet=True).finished
    assert sending.saved == {**dict.fromkeys(range(5)), **dict.fromkeys(range(5, 12), 5)}
    assert same_tensors(run.last, tmp_path / "plain" / "last.safetensors")


def test_sigterm_from_several_sides_saves_once(tmp_path: Path, corpus: Corpus) -> None:
    """SLURM sends SIGTERM to every process, and torchrun's agent sends it again."""
    run = Run(tmp_path / "run")
    sending = Sending(run, 4, signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1, signal.SIGTERM)
    recipe = tiny_recipe(corpus, **RARELY)
    outcome = train(run, recipe, corpus, plugins=[sending], quiet=True)
    assert not outcome.finished
    assert run.progress("last").step == outcome.step == 5


def test_only_a_later_ctrl_c_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with deferred_interruption() as asked:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert asked.requested
        monkeypatch.setattr(interruption, "AS_ONE", 0.0)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
