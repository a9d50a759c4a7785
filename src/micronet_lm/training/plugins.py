"""What a technique may add to the one training loop: another loss, or something after each step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from micronet_lm.model import LanguageModel


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One process's part of a step's sequences."""

    inputs: Tensor
    """(B, T) words to read."""

    targets: Tensor
    """(B, T) words to predict."""

    starts: Tensor
    """(B) places of the first input in the training split."""

    step: int
    """Number of the step, counted from 0."""


class Objective(Protocol):
    """A loss of hidden states, as a mean over the batch's tokens."""

    def __call__(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> Tensor:
        """Return a scalar loss from hidden states (B, T, D)."""


def next_word_loss(model: LanguageModel, hidden: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy of the next word: −mean log P(x_n | x_1 … x_{n−1})."""
    return -model.log_probability(hidden.flatten(0, 1), batch.targets.flatten()).mean()


class Plugin:
    """A technique that acts on the model while it is trained. Every method may be left out."""

    name = "plugin"
    """Names the plug-in's tensors in checkpoints."""

    def start(self, model: LanguageModel, step: int) -> None:
        """Act before the first step of this process, which is number `step`."""

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        """Act on the weights after the optimizer did; `hidden` (B, T, D) is from before."""

    def tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold for the technique to go on exactly."""
        return {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""
