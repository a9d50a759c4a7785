"""Muon: momentum made orthogonal, for the matrices inside the layers (Jordan et al. 2024).

The update of a matrix is its momentum with all singular values brought near 1, so that no direction
of the weights is left behind. It is scaled to the size of Adam's updates (Liu et al. 2025), so that
both share one learning rate and one weight decay.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

MOMENTUM = 0.95
"""Decay of the mean of gradients."""

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""The quintic iteration's: singular values from 0.01 to 1 come to lie between 0.7 and 1.2."""

_ITERATIONS = 5

_ADAMS_SIZE = 0.2
"""Root mean square of Adam's updates in practice, in units of its learning rate."""


def takes_muon(name: str, parameter: nn.Parameter) -> bool:
    """Return whether Muon moves a parameter: a matrix inside a layer, but no position table."""
    return name.startswith("blocks.") and parameter.ndim == 2 and "positions" not in name


def orthogonalized(matrix: Tensor) -> Tensor:
    """Return the matrix with its singular values near 1, by Newton-Schulz iterations."""
    first, third, fifth = _COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x: Tensor = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(_ITERATIONS):
        square = x @ x.T
        x = first * x + (third * square + fifth * square @ square) @ x
    return x.T if tall else x


@torch.no_grad()
def move(
    parameters: Iterable[tuple[nn.Parameter, Tensor]], learning_rate: float, weight_decay: float
) -> None:
    """Apply the gradients of parameters, each with its momentum, which is updated."""
    for parameter, momentum in parameters:
        if parameter.grad is None:
            continue
        momentum.lerp_(parameter.grad, 1 - MOMENTUM)
        update = orthogonalized(torch.lerp(parameter.grad, momentum, MOMENTUM))  # Nesterov's
        size = _ADAMS_SIZE * math.sqrt(max(parameter.shape))
        parameter.mul_(1 - learning_rate * weight_decay)
        parameter.add_(update, alpha=-learning_rate * size)
