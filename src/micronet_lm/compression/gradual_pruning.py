"""Automated gradual pruning (Zhu & Gupta 2017) as a plug-in of the one training loop.

Sparsity rises along a cubic curve: fast at first, slowly at the end. At intervals the smallest
weights are pruned; in between, the masks are applied after every optimizer step and other plug-ins.
Pruned weights stay pruned, because they are zero when the next ones are chosen.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from micronet_lm.compression.magnitude import Ranking, model_sparsity, prunable
from micronet_lm.layout import Phi, counted_size
from micronet_lm.model import LanguageModel
from micronet_lm.training.plugins import Batch, Plugin
from micronet_lm.training.processes import Processes


def cubic_sparsity(step: int, *, steps: int, initial: float, final: float) -> float:
    """Return the sparsity after `step` of `steps` steps: s_t = s_f + (s_i − s_f)(1 − t/T)³."""
    left = 1 - min(step, steps) / steps
    return final + (initial - final) * left**3


class GradualPruning(Plugin):
    """Pruning of every matrix from its initial to its final sparsity during training."""

    name = "pruning"
    handles = frozenset({"prune"})

    def __init__(
        self,
        initial: Mapping[str, float],
        final: Mapping[str, float],
        *,
        steps: int,
        every: int,
        weights: Phi = "matrices",
        record: Callable[[], None] = lambda: None,
    ) -> None:
        """Prune every `every` of `steps` steps; `record` is called when a run begins.

        `weights` is Φ, which the reported sparsity is a share of.
        """
        self._record, self._weights = record, weights
        self._initial, self._final = dict(initial), dict(final)
        self._steps, self._every = steps, every
        self._masks: dict[str, Tensor] = {}
        self._counted, self._reached = 1, 0.0

    def prepare(self, model: LanguageModel, processes: Processes) -> None:
        """Prune the new model to the initial sparsities."""
        self._counted = counted_size(model.config, self._weights)
        self._prune(model, 0)
        if processes.leads:
            self._record()

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        """Prune more if it is time; keep pruned weights at zero."""
        done = batch.step + 1
        if done <= self._steps and (done % self._every == 0 or done == self._steps):
            self._prune(model, done)
        else:
            apply_masks(model, self._masks)

    def settled(self, step: int) -> bool:
        """Return whether the final sparsity is reached."""
        return step >= self._steps

    def numbers(self) -> dict[str, float]:
        """Return ρ."""
        return {"sparsity": self._reached}

    def tensors(self) -> dict[str, Tensor]:
        """Return the masks."""
        return {name: mask.to(torch.uint8) for name, mask in self._masks.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the masks."""
        for name, mask in tensors.items():
            self._masks[name] = mask.to(torch.bool).to(self._masks[name].device)
        zeros = sum(int((~mask).sum()) for mask in self._masks.values())
        self._reached = zeros / self._counted

    def _prune(self, model: LanguageModel, step: int) -> None:
        self._masks = {
            name: Ranking(matrix).keep(
                cubic_sparsity(
                    step, steps=self._steps, initial=self._initial[name], final=self._final[name]
                )
            )
            for name, matrix in prunable(model, self._weights).items()
        }
        apply_masks(model, self._masks)
        self._reached = model_sparsity(model, self._weights)


@torch.no_grad()
def apply_masks(model: nn.Module, masks: Mapping[str, Tensor]) -> None:
    """Set weights to zero where their mask is False."""
    for name, mask in masks.items():
        model.get_parameter(name).mul_(mask)


def prune_once(model: nn.Module, sparsities: Mapping[str, float]) -> None:
    """Prune each tensor's smallest weights at once, without retraining."""
    masks = {n: Ranking(model.get_parameter(n)).keep(s) for n, s in sparsities.items()}
    apply_masks(model, masks)
