"""How much each matrix is pruned so that the whole model has a given sparsity (section 4.2).

A sensitivity curve f_φ gives the perplexity as a function of matrix φ's sparsity, all others
untouched. All matrices are pruned up to the same perplexity: ρ_φ = f_φ⁻¹(ξ*), where the threshold
ξ* is found by bisection such that the size-weighted mean of ρ_φ is the target ρ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from micronet_lm.errors import UsageError

SLOPE = 1e-9
"""Added to every curve, as a share of its perplexity a unit of sparsity.

Where a curve is flat its inverse would jump; so a flat curve still has a place for every ξ.
"""


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """A sparsity for every matrix."""

    threshold: float | None
    """ξ*: the perplexity that pruning any one of the matrices alone would cost."""

    sparsity: float
    """ρ that is reached."""

    sparsities: dict[str, float]
    """ρ_φ by the matrix's name."""


class Curve:
    """f_φ: a matrix's perplexity over its sparsity, made monotone, straight between points."""

    def __init__(self, sparsities: Sequence[float], perplexities: Sequence[float]) -> None:
        order = np.argsort(sparsities)
        self.sparsities: NDArray[np.float64] = np.asarray(sparsities, dtype=np.float64)[order]
        values = np.asarray(perplexities, dtype=np.float64)[order]
        # A little pruning may even help; a curve that falls has no inverse.
        monotone = np.maximum.accumulate(values)
        self.perplexities = monotone + SLOPE * monotone[0] * self.sparsities

    def __call__(self, sparsity: float) -> float:
        """f_φ(ρ_φ)."""
        return float(np.interp(sparsity, self.sparsities, self.perplexities))

    def inverse(self, perplexity: float) -> float:
        """f_φ⁻¹(ξ): the sparsity that costs a perplexity of ξ, within what was measured."""
        return float(np.interp(perplexity, self.perplexities, self.sparsities))


def allocate(curves: Mapping[str, Curve], sizes: Mapping[str, int], target: float) -> Allocation:
    """Find ξ* and every ρ_φ for a model sparsity of `target` (ρ)."""
    if not 0 <= target < 1:
        raise UsageError(f"a sparsity of {target} is none: it must be at least 0 and below 1")
    total = sum(sizes[name] for name in curves)

    def reached(threshold: float) -> float:
        return sum(sizes[n] * c.inverse(threshold) for n, c in curves.items()) / total

    low = min(curve.perplexities[0] for curve in curves.values())
    high = max(curve.perplexities[-1] for curve in curves.values())
    if (most := reached(high)) < target - 1e-9:
        raise UsageError(
            f"a sparsity of {target} cannot be reached: the curves go up to {most:.4f}; "
            "choose a lower one, or analyse with a grid that goes further"
        )
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if reached(middle) < target else (low, middle)
    return Allocation(
        threshold=high,
        sparsity=reached(high),
        sparsities={name: curve.inverse(high) for name, curve in curves.items()},
    )


def uniform(sizes: Mapping[str, int], target: float) -> Allocation:
    """Give every matrix the same sparsity: the baseline that the allocation must beat."""
    return Allocation(threshold=None, sparsity=target, sparsities=dict.fromkeys(sizes, target))
