"""Magnitude pruning: the weights of the smallest magnitude, an exact number of them."""

import torch
from torch import Tensor, nn


def prunable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return a model's weight matrices by name: embedding tables, projections, linear maps.

    A table shared by input and output is one matrix. Biases, norms and the position tables
    (d_k × C), whose scores act like biases, are not pruned.
    """
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.ndim == 2 and not name.endswith("positions")
    }


class Ranking:
    """A matrix's weights in the order of pruning."""

    def __init__(self, weight: Tensor) -> None:
        self._shape = weight.shape
        # Stable, so that equal magnitudes keep the order of their positions on every machine.
        self._order = torch.argsort(weight.detach().abs().flatten(), stable=True)

    def keep(self, sparsity: float) -> Tensor:
        """Return a mask that is False at round(sparsity · |φ|) weights, the smallest ones."""
        mask = torch.ones(len(self._order), dtype=torch.bool, device=self._order.device)
        mask[self._order[: removed(len(self._order), sparsity)]] = False
        return mask.view(self._shape)


def removed(size: int, sparsity: float) -> int:
    """Return the number of a matrix's weights that a sparsity prunes."""
    return round(size * sparsity)


def model_sparsity(model: nn.Module) -> float:
    """Return ρ, the size-weighted mean of the matrices' sparsities (section 4.2)."""
    matrices = prunable(model).values()
    zeros = sum(int((matrix == 0).sum()) for matrix in matrices)
    return zeros / max(1, sum(matrix.numel() for matrix in matrices))
