"""Automated gradual pruning (Zhu & Gupta 2017) as a plug-in of the one training loop.

Sparsity rises along a cubic curve: fast while much is superfluous, slowly at the end. Every so
many steps the smallest weights are removed anew; in between the masks hold, after every optimizer
step and whatever else moves weights. What was removed stays removed, for it is zero when the next
weights are chosen.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from micronet_lm.compression.magnitude import Ranking, model_sparsity, prunable
from micronet_lm.model import LanguageModel
from micronet_lm.training.plugins import Batch, Plugin
from micronet_lm.training.processes import Processes


def cubic_sparsity(step: int, *, steps: int, initial: float, final: float) -> float:
    """s_t = s_f + (s_i − s_f)(1 − t/T)³: the sparsity after `step` of `steps` steps."""
    left = 1 - min(step, steps) / steps
    return final + (initial - final) * left**3


class GradualPruning(Plugin):
    """Prunes every matrix from its initial to its final sparsity while the model is trained."""

    name = "pruning"
    handles = frozenset({"prune"})

    def __init__(
        self,
        initial: Mapping[str, float],
        final: Mapping[str, float],
        *,
        steps: int,
        every: int,
        record: Callable[[], None] = lambda: None,
    ) -> None:
        """Prune over `steps` steps, every so many; `record` is called when a run begins."""
        self._record = record
        self._initial, self._final = dict(initial), dict(final)
        self._steps, self._every = steps, every
        self._masks: dict[str, Tensor] = {}
        self._reached = 0.0

    def prepare(self, model: LanguageModel, processes: Processes) -> None:
        """Prune the new model to the initial sparsities."""
        self._prune(model, 0)
        if processes.leads:
            self._record()

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        """Remove more when it is time; hold what was removed at zero."""
        done = batch.step + 1
        if done <= self._steps and (done % self._every == 0 or done == self._steps):
            self._prune(model, done)
        else:
            apply_masks(model, self._masks)

    def settled(self, step: int) -> bool:
        """Whether the final sparsity is reached."""
        return step >= self._steps

    def numbers(self) -> dict[str, float]:
        """Report ρ."""
        return {"sparsity": self._reached}

    def tensors(self) -> dict[str, Tensor]:
        """Return the masks."""
        return {name: mask.to(torch.uint8) for name, mask in self._masks.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take the masks back."""
        for name, mask in tensors.items():
            self._masks[name] = mask.to(torch.bool).to(self._masks[name].device)
        zeros = sum(int((~mask).sum()) for mask in self._masks.values())
        self._reached = zeros / max(1, sum(mask.numel() for mask in self._masks.values()))

    def _prune(self, model: LanguageModel, step: int) -> None:
        self._masks = {
            name: Ranking(matrix).keep(
                cubic_sparsity(
                    step, steps=self._steps, initial=self._initial[name], final=self._final[name]
                )
            )
            for name, matrix in prunable(model).items()
        }
        apply_masks(model, self._masks)
        self._reached = model_sparsity(model)


@torch.no_grad()
def apply_masks(model: nn.Module, masks: Mapping[str, Tensor]) -> None:
    """Set to zero what the masks leave out."""
    for name, mask in masks.items():
        model.get_parameter(name).mul_(mask)


def prune_once(model: nn.Module, sparsities: Mapping[str, float]) -> None:
    """One-shot pruning: remove each matrix's smallest weights, without retraining."""
    matrices = prunable(model)
    apply_masks(model, {n: Ranking(matrices[n]).keep(s) for n, s in sparsities.items()})
