"""The two ways for a technique to join the training loop: an objective, or a plug-in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from torch import Tensor

from micronet_lm.config import Recipe
from micronet_lm.errors import ConfigError
from micronet_lm.model import LanguageModel, Memory
from micronet_lm.training.processes import Processes


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some of a step's sequences: those of one process, or a part of them."""

    inputs: Tensor
    """(B, T) words to read."""

    targets: Tensor
    """(B, T) words to predict."""

    starts: Tensor
    """(B) positions of the first inputs in the training split, on the CPU."""

    step: int
    """Number of the step, counted from 0."""

    fresh: bool
    """Whether the sequences start again instead of continuing those of the previous step."""

    prefix: Tensor | None = None
    """(B, P) words before the inputs, to read without gradients, if any."""

    def part(self, rows: slice) -> "Batch":
        """Return some of the sequences."""
        return replace(
            self,
            inputs=self.inputs[rows],
            targets=self.targets[rows],
            starts=self.starts[rows],
            prefix=None if self.prefix is None else self.prefix[rows],
        )


@dataclass(frozen=True, kw_only=True)
class Loss:
    """An objective's result for a batch: means over its tokens."""

    total: Tensor
    """The loss that is minimized."""

    hard: Tensor | None = None
    """Cross-entropy of the next word, for the perplexity, if `total` is another loss."""

    numbers: Mapping[str, float | Tensor] = field(default_factory=dict)
    """Further numbers for the metrics, as means over the steps of a line."""

    def reported(self) -> dict[str, float | Tensor]:
        """Return all numbers by their names in the metrics, without waiting for their values."""
        hard = {} if self.hard is None else {"hard_loss": self.hard}
        every = {"loss": self.total, **hard, **self.numbers}
        return {
            name: value.detach() if isinstance(value, Tensor) else value
            for name, value in every.items()
        }


class Objective(Protocol):
    """A loss of hidden states, as a mean over the batch's tokens."""

    def __call__(
        self, model: LanguageModel, hidden: Tensor, batch: Batch, memory: Memory | None
    ) -> Loss:
        """Return the loss of hidden states (B, T, D).

        `memory` is the contents of the model's cache before this batch.
        """


def next_word_loss(
    model: LanguageModel, hidden: Tensor, batch: Batch, memory: Memory | None
) -> Loss:
    """Return the cross-entropy of the next word: −mean log P(x_n | x_1 … x_{n−1})."""
    return Loss(total=-model.log_probability(hidden, batch.targets, memory).mean())


class Plugin:
    """A technique that acts on the model during training. Every method is optional."""

    name = "plugin"
    """Prefix of the plug-in's tensors in checkpoints."""

    handles: frozenset[str] = frozenset()
    """Sections of a recipe that it implements; an objective may have the same attribute."""

    def prepare(self, model: LanguageModel, processes: Processes) -> None:
        """Act on the new model; parameters added to it here are trained and saved with it."""

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        """Act once after each optimizer step, on this process's whole share of the batch.

        The step's loss was computed from `hidden` (B, T, D) and `batch`.
        """

    def settled(self, step: int) -> bool:
        """Return whether the model after `step` steps may be chosen as the best.

        A pruned model, for example, may not before it reaches its sparsity.
        """
        return True

    def numbers(self) -> dict[str, float]:
        """Return further numbers for the metrics."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that a checkpoint needs to resume the technique bit-exactly."""
        return {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the tensors that `tensors` returned."""


NEEDS = {
    "distill": (
        "which needs a teacher's soft labels: micronet distill RECIPE --labels DIR --out RUN"
    ),
    "prune": "which needs a trained run: micronet prune RUN --out DIR",
    "quantize": (
        "which needs a trained run, and a quantized model cannot be trained further: micronet "
        "quantize RUN --out DIR"
    ),
}
"""Sections of a recipe that plain training does not implement, and what each needs."""


def check_handled(recipe: Recipe, objective: Objective, plugins: Sequence[Plugin]) -> None:
    """Refuse a recipe with a section that neither the objective nor a plug-in handles."""
    handled: set[str] = set(getattr(objective, "handles", ()))
    handled |= {section for plugin in plugins for section in plugin.handles}
    for section, need in NEEDS.items():
        if getattr(recipe, section) is not None and section not in handled:
            raise ConfigError(f"the recipe has a section {section}, {need}")
