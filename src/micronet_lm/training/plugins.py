"""What a technique may add to the one training loop: another loss, or an act after each step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from micronet_lm.config import Recipe
from micronet_lm.errors import ConfigError
from micronet_lm.model import LanguageModel, Memory
from micronet_lm.training.processes import Processes


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some of a step's sequences: one process's, or a part of them."""

    inputs: Tensor
    """(B, T) words to read."""

    targets: Tensor
    """(B, T) words to predict."""

    starts: Tensor
    """(B) places of the first input in the training split."""

    step: int
    """Number of the step, counted from 0."""

    fresh: bool
    """Whether the sequences do not continue those of the step before."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What an objective makes of a batch: means over its tokens."""

    total: Tensor
    """What is minimized."""

    hard: Tensor | None = None
    """Cross-entropy of the next word, where `total` is something else: perplexity comes from it."""

    numbers: Mapping[str, float | Tensor] = field(default_factory=dict)
    """What the metrics should report beside, as means over the steps of a line."""

    def reported(self) -> dict[str, float]:
        """Return all numbers by the names that they have in the metrics."""
        hard = {} if self.hard is None else {"hard_loss": self.hard}
        every = {"loss": self.total, **hard, **self.numbers}
        return {
            name: float(value.detach() if isinstance(value, Tensor) else value)
            for name, value in every.items()
        }


class Objective(Protocol):
    """A loss of hidden states, as a mean over the batch's tokens."""

    def __call__(
        self, model: LanguageModel, hidden: Tensor, batch: Batch, memory: Memory | None
    ) -> Loss:
        """Return the loss of hidden states (B, T, D).

        `memory` is what the model's cache remembers of the sequences from before this batch.
        """


def next_word_loss(
    model: LanguageModel, hidden: Tensor, batch: Batch, memory: Memory | None
) -> Loss:
    """Cross-entropy of the next word: −mean log P(x_n | x_1 … x_{n−1})."""
    return Loss(total=-model.log_probability(hidden, batch.targets, memory).mean())


class Plugin:
    """A technique that acts on the model while it is trained. Every method may be left out."""

    name = "plugin"
    """Names the plug-in's tensors in checkpoints."""

    handles: frozenset[str] = frozenset()
    """Sections of a recipe that it carries out; an objective may have the same attribute."""

    def prepare(self, model: LanguageModel, processes: Processes) -> None:
        """Act on the new model; parameters added to it here are trained and saved with it."""

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        """Act once after each optimizer step, on this process's whole share of the batch.

        `hidden` (B, T, D) and `batch` are what the step's loss was computed from.
        """

    def settled(self, step: int) -> bool:
        """Whether the model after `step` steps is of the kind that the run is to give.

        The best model is chosen among such only.
        """
        return True

    def numbers(self) -> dict[str, float]:
        """Return what the metrics should report beside the loss."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold for the technique to go on exactly."""
        return {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""


NEEDS = {
    "distill": (
        "which needs a teacher's soft labels: micronet distill RECIPE --labels DIR --out RUN"
    ),
    "prune": "which needs a trained run: micronet prune RUN --out DIR",
    "quantize": (
        "which needs a trained run, and a quantized model is trained no further: micronet quantize "
        "RUN --out DIR"
    ),
}
"""Sections of a recipe that plain training does not carry out, and what each needs."""


def check_handled(recipe: Recipe, objective: Objective, plugins: Sequence[Plugin]) -> None:
    """Refuse a recipe with a section that neither the objective nor a plug-in handles."""
    handled: set[str] = set(getattr(objective, "handles", ()))
    handled |= {section for plugin in plugins for section in plugin.handles}
    for section, need in NEEDS.items():
        if getattr(recipe, section) is not None and section not in handled:
            raise ConfigError(f"the recipe has a section {section}, {need}")
