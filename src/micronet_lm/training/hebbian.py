"""The Hebbian update as a part of training: its counters, its reports, all processes alike."""

from collections.abc import Mapping

import torch
from torch import Tensor

from micronet_lm.config import HebbianConfig
from micronet_lm.model import LanguageModel
from micronet_lm.model.hebbian import hebbian_update
from micronet_lm.training.plugins import Batch, Plugin
from micronet_lm.training.processes import Processes


class Hebbian(Plugin):
    """Moves the output rows of the words just seen after each optimizer step."""

    name = "hebbian"

    def __init__(self, config: HebbianConfig) -> None:
        self._config = config
        self._moved = 0

    def prepare(self, model: LanguageModel, processes: Processes) -> None:
        """Begin to count: no word has been seen."""
        self._processes = processes
        words = model.config.bounds[-1]
        self._seen = torch.zeros(words, dtype=torch.int32, device=processes.device)

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        """Move the rows of the whole batch's targets.

        Every process takes everybody's activations and does the same sums in the same order, so
        that all weights and counters stay equal to the bit, and equal to those of one process.
        """
        states = self._processes.gather(hidden.float().flatten(0, 1))
        words = self._processes.gather(batch.targets.flatten())
        self._moved = hebbian_update(
            model, states, words, self._seen, gamma=self._config.gamma, limit=self._config.limit
        )

    def numbers(self) -> dict[str, float]:
        """Report how many rows moved in the last step."""
        return {"hebbian_rows": float(self._moved)}

    def tensors(self) -> dict[str, Tensor]:
        """Return the counters."""
        return {"seen": self._seen}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take the counters back."""
        self._seen = tensors["seen"].to(self._processes.device)
