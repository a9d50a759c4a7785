"""Magnitude pruning: the weights of the smallest magnitude, an exact number of them."""

import torch
from torch import Tensor, nn

from micronet_lm.compression.criteria import CriterionName, pruning_order
from micronet_lm.layout import Phi, counted_size, prunable_sizes
from micronet_lm.model import LanguageModel


def prunable(model: LanguageModel, phi: Phi = "matrices") -> dict[str, nn.Parameter]:
    """Return the tensors of a model that may be pruned, by name (`prune.weights`).

    A table shared by input and output is one matrix. Norms and the position tables (d_k × C), whose
    scores act like biases, are not pruned.
    """
    return {name: model.get_parameter(name) for name in prunable_sizes(model.config, phi)}


class Ranking:
    """A matrix's weights in the order of pruning."""

    def __init__(self, weight: Tensor, criterion: CriterionName = "magnitude") -> None:
        self._shape, self._order = weight.shape, pruning_order(weight, criterion)

    def keep(self, sparsity: float) -> Tensor:
        """Return a mask that is False at the first round(sparsity · |φ|) weights."""
        mask = torch.ones(len(self._order), dtype=torch.bool, device=self._order.device)
        mask[self._order[: removed(len(self._order), sparsity)]] = False
        return mask.view(self._shape)


def removed(size: int, sparsity: float) -> int:
    """Return the number of a matrix's weights that a sparsity prunes."""
    return round(size * sparsity)


def model_sparsity(model: LanguageModel, phi: Phi = "matrices") -> float:
    """Return ρ = Σ|φ|ρ_φ / Σ|φ| (section 4.2)."""
    zeros = sum(int((tensor == 0).sum()) for tensor in prunable(model, phi).values())
    return zeros / counted_size(model.config, phi)
