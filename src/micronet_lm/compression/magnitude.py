"""Which weights to remove: those of the smallest magnitude, exactly as many as asked for."""

import torch
from torch import Tensor, nn


def prunable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Name a model's weight matrices: embedding tables, projections and all linear maps.

    A table that input and output share is one matrix. Biases and norms are no matrices; the
    position tables (d_k × C) hold a score for each distance, like biases, and are spared too.
    """
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.ndim == 2 and not name.endswith("positions")
    }


class Ranking:
    """A matrix's weights in the order in which they are removed."""

    def __init__(self, weight: Tensor) -> None:
        self._shape = weight.shape
        # Stable, so that equal magnitudes go in the order of their places, everywhere alike.
        self._order = torch.argsort(weight.detach().abs().flatten(), stable=True)

    def keep(self, sparsity: float) -> Tensor:
        """Return a mask that is False at round(sparsity · |φ|) weights, the smallest ones."""
        mask = torch.ones(len(self._order), dtype=torch.bool, device=self._order.device)
        mask[self._order[: removed(len(self._order), sparsity)]] = False
        return mask.view(self._shape)


def removed(size: int, sparsity: float) -> int:
    """How many of a matrix's weights a sparsity removes."""
    return round(size * sparsity)


def model_sparsity(model: nn.Module) -> float:
    """ρ: the size-weighted mean of the matrices' sparsities (section 4.2)."""
    matrices = prunable(model).values()
    zeros = sum(int((matrix == 0).sum()) for matrix in matrices)
    return zeros / max(1, sum(matrix.numel() for matrix in matrices))
