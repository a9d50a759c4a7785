"""The batches of a process: sampled from the training split, and brought to its device."""

import torch

from micronet_lm.corpus.sampling import Sampler
from micronet_lm.training.device import on_device
from micronet_lm.training.plugins import Batch
from micronet_lm.training.processes import Processes


class Loader:
    """A process's share of each step's sequences.

    A GPU computes while this process continues: `prefetch` then prepares the next step's batch.
    """

    def __init__(self, sampler: Sampler, processes: Processes, rows: int, *, prefix: bool) -> None:
        self._sampler, self._processes = sampler, processes
        self._rows, self._prefix = rows, prefix
        self._ahead: Batch | None = None

    def batch(self, step: int) -> Batch:
        """Return this process's share of a step's sequences."""
        ahead, self._ahead = self._ahead, None
        return ahead if ahead is not None and ahead.step == step else self._load(step)

    def prefetch(self, step: int) -> None:
        """Begin to load the share of a later step; on the CPU, which has no time for it, do not."""
        if self._processes.device.type != "cpu":
            self._ahead = self._load(step)

    def _load(self, step: int) -> Batch:
        rows = self._sampler.rows(step, self._processes.rank * self._rows, self._rows)
        device = self._processes.device
        return Batch(
            inputs=on_device(rows.inputs, device),
            targets=on_device(rows.targets, device),
            starts=torch.from_numpy(rows.starts),
            step=step,
            fresh=rows.fresh,
            prefix=on_device(rows.prefix, device) if self._prefix else None,
        )
