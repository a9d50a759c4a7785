"""How much each matrix is pruned so that the whole model has a given sparsity (section 4.2).

A sensitivity curve f_φ gives the perplexity as a function of matrix φ's sparsity, all others
untouched. The size-weighted mean of the matrices' sparsities ρ_φ must be the target ρ.

- `by_threshold` is the paper's way: all matrices are pruned up to the same perplexity, ρ_φ =
  f_φ⁻¹(ξ*), where ξ* is found by bisection.
- `by_slope` goes beyond it: the next weight is always removed where it costs least, until enough
  are. If costs add up, nothing is cheaper. The paper's way lets a small matrix cost as much as a
  large one, although it has less to give for it.
- `uniform` prunes all alike: the baseline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    """ξ*: what pruning any one of the matrices alone would cost, if shared out by that."""

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


def by_threshold(
    curves: Mapping[str, Curve], sizes: Mapping[str, int], target: float
) -> Allocation:
    """Find ξ* and every ρ_φ for a model sparsity of `target` (ρ)."""
    _check(curves, sizes, target)
    total = sum(sizes[name] for name in curves)

    def reached(threshold: float) -> float:
        return sum(sizes[n] * c.inverse(threshold) for n, c in curves.items()) / total

    low = min(curve.perplexities[0] for curve in curves.values())
    high = max(curve.perplexities[-1] for curve in curves.values())
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


def by_slope(curves: Mapping[str, Curve], sizes: Mapping[str, int], target: float) -> Allocation:
    """Spread a model sparsity of `target` so that the matrices' losses together rise least."""
    _check(curves, sizes, target)
    total = sum(sizes[name] for name in curves)
    stretches = []  # (rise of the loss a weight, matrix, from this sparsity, to that)
    for name, curve in curves.items():
        for (low, below), (high, above) in pairwise(_hull(curve)):
            weights = (high - low) * sizes[name]
            stretches.append(((above - below) / max(weights, 1e-12), name, low, high))
    sparsities = dict.fromkeys(curves, 0.0)
    left = target * total
    for _, name, low, high in sorted(stretches):
        taken = min(left, (high - low) * sizes[name])
        sparsities[name] = low + taken / max(1, sizes[name])
        left -= taken
        if left <= 0:
            break
    reached = sum(sizes[name] * sparsity for name, sparsity in sparsities.items()) / total
    return Allocation(threshold=None, sparsity=reached, sparsities=sparsities)


def uniform(sizes: Mapping[str, int], target: float) -> Allocation:
    """Give every matrix the same sparsity: the baseline that the allocation must beat."""
    return Allocation(threshold=None, sparsity=target, sparsities=dict.fromkeys(sizes, target))


def _check(curves: Mapping[str, Curve], sizes: Mapping[str, int], target: float) -> None:
    if not 0 <= target < 1:
        raise UsageError(f"a sparsity of {target} is none: it must be at least 0 and below 1")
    total = sum(sizes[name] for name in curves)
    most = sum(sizes[name] * float(curve.sparsities[-1]) for name, curve in curves.items()) / total
    if most < target - 1e-9:
        raise UsageError(
            f"a sparsity of {target} cannot be reached: the curves go up to {most:.4f}; "
            "choose a lower one, or analyse with a grid that goes further"
        )


def _hull(curve: Curve) -> list[tuple[float, float]]:
    """Points (sparsity, loss) of the curve's lower convex hull.

    Where a curve bends back, whoever enters the bend should go through it: the mean slope counts.
    """
    hull: list[tuple[float, float]] = []
    for x, y in zip(curve.sparsities.tolist(), np.log(curve.perplexities).tolist(), strict=True):
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull
