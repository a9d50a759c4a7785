"""Divide a model's sparsity among its matrices (section 4.2).

A sensitivity curve f_φ gives the perplexity as a function of matrix φ's sparsity, all others
unchanged. The size-weighted mean of the matrices' sparsities ρ_φ must be the target ρ.

- `by_threshold` is the paper's way: all matrices are pruned up to the same perplexity, ρ_φ =
  f_φ⁻¹(ξ*), where ξ* is found by bisection.
- `by_slope` goes beyond it: the next weight is always removed where it costs least, which is
  optimal if costs add up. The paper's way lets a small matrix cost as much as a large one,
  although it saves less.
- `uniform` gives all matrices the same sparsity: the baseline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from micronet_lm.errors import UsageError

SLOPE = 1e-9
"""Added to every curve, as a share of its perplexity per unit of sparsity.

Without it, the inverse of a flat curve would jump.
"""


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """A sparsity for every matrix."""

    threshold: float | None
    """ξ*, the perplexity up to which each matrix is pruned; None for other allocations."""

    sparsity: float
    """The sparsity ρ that is reached."""

    sparsities: dict[str, float]
    """ρ_φ by the matrix's name."""


class Curve:
    """f_φ: perplexity over a matrix's sparsity, made monotone, linear between points."""

    def __init__(self, sparsities: Sequence[float], perplexities: Sequence[float]) -> None:
        order = np.argsort(sparsities)
        self.sparsities: NDArray[np.float64] = np.asarray(sparsities, dtype=np.float64)[order]
        values = np.asarray(perplexities, dtype=np.float64)[order]
        # A little pruning may lower the perplexity; a falling curve has no inverse.
        monotone = np.maximum.accumulate(values)
        self.perplexities = monotone + SLOPE * monotone[0] * self.sparsities

    def __call__(self, sparsity: float) -> float:
        """Return f_φ(ρ_φ)."""
        return float(np.interp(sparsity, self.sparsities, self.perplexities))

    def inverse(self, perplexity: float) -> float:
        """Return f_φ⁻¹(ξ): the sparsity with a perplexity of ξ, within the measured range."""
        return float(np.interp(perplexity, self.perplexities, self.sparsities))


def by_threshold(
    curves: Mapping[str, Curve], sizes: Mapping[str, int], target: float, total: int | None = None
) -> Allocation:
    """Return ξ* and every ρ_φ for a model sparsity of `target` (ρ).

    Here and below, `total` is Σ|φ| over Φ if that has weights besides those with curves.
    """
    total = _check(curves, sizes, target, total)

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


def by_slope(
    curves: Mapping[str, Curve], sizes: Mapping[str, int], target: float, total: int | None = None
) -> Allocation:
    """Return the allocation of a model sparsity `target` with the smallest rise of the loss."""
    total = _check(curves, sizes, target, total)
    stretches = []  # (rise of the loss per weight, matrix, from this sparsity, to that)
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


def uniform(sizes: Mapping[str, int], target: float, total: int | None = None) -> Allocation:
    """Return the same sparsity for every matrix: the baseline."""
    prunable = sum(sizes.values())
    own = target * (total or prunable) / prunable
    if not own <= 1:
        raise UsageError(
            f"sparsity must be at most {prunable / (total or prunable):.4f}, the share of weights "
            f"that may be pruned, got {target}: choose a lower one"
        )
    return Allocation(threshold=None, sparsity=target, sparsities=dict.fromkeys(sizes, own))


def _check(
    curves: Mapping[str, Curve], sizes: Mapping[str, int], target: float, total: int | None
) -> int:
    """Refuse a sparsity that cannot be reached; return the number of weights in Φ."""
    if not 0 <= target < 1:
        raise UsageError(f"sparsity must be in [0, 1), got {target}")
    total = total or sum(sizes[name] for name in curves)
    most = sum(sizes[name] * float(curve.sparsities[-1]) for name, curve in curves.items()) / total
    if most < target - 1e-9:
        raise UsageError(
            f"sparsity must be at most {most:.4f}, the end of the measured curves, got {target}: "
            "choose a lower one, or analyse with a grid that reaches it"
        )
    return total


def _hull(curve: Curve) -> list[tuple[float, float]]:
    """Return points (sparsity, loss) of the curve's lower convex hull.

    A concave stretch is pruned as a whole, so its mean slope counts.
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
