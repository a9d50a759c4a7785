"""The Hebbian update as a plug-in of training, equal in all processes."""

from collections.abc import Mapping

import torch
from torch import Tensor

from micronet_lm.config import HebbianConfig
from micronet_lm.model import LanguageModel
from micronet_lm.model.hebbian import hebbian_update
from micronet_lm.training.plugins import Batch, Plugin
from micronet_lm.training.processes import Processes


class Hebbian(Plugin):
    """Update of the output rows of the words just seen, after each optimizer step."""

    name = "hebbian"

    def __init__(self, config: HebbianConfig) -> None:
        self._config = config
        self._moved = 0

    def prepare(self, model: LanguageModel, processes: Processes) -> None:
        """Set all counters to zero."""
        self._processes = processes
        words = model.config.bounds[-1]
        self._seen = torch.zeros(words, dtype=torch.int32, device=processes.device)

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        """Move the rows of the whole batch's targets.

        Every process gathers the hidden states of all and does the same sums in the same order, so
        that weights and counters stay bit-exactly equal, also to those of a single process.
        """
        states = self._processes.gather(hidden.float().flatten(0, 1))
        words = self._processes.gather(batch.targets.flatten())
        self._moved = hebbian_update(
            model, states, words, self._seen, gamma=self._config.gamma, limit=self._config.limit
        )

    def numbers(self) -> dict[str, float]:
        """Return the number of rows moved in the last step."""
        return {"hebbian_rows": float(self._moved)}

    def tensors(self) -> dict[str, Tensor]:
        """Return the counters."""
        return {"seen": self._seen}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the counters."""
        self._seen = tensors["seen"].to(self._processes.device)
