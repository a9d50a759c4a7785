"""Where a cache helps: the difference of two models' losses, token by token (section 5.2).

Tokens of a text are sorted into bins, by their word's rank in frequency or by the distance to the
word's previous occurrence. The difference is summed up from bin to bin, and the bins' sizes with
it: were the difference spread evenly over all tokens, the two would grow alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

By = Literal["tokens", "gaps"]

BINS_A_DECADE = 12
"""Bins are equally wide on a logarithmic scale."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What one model loses against another, bin by bin."""

    name: str
    """The model that is compared."""

    reference: str
    """The model it is compared with."""

    cumulative: tuple[float, ...]
    """Sum over all bins so far of (its loss − the reference's), in nats by all tokens' number."""


@dataclass(frozen=True, kw_only=True)
class CacheEffect:
    """The data of one figure."""

    by: By
    """What tokens are sorted by."""

    tokens: int
    """Predicted tokens of the text."""

    edges: tuple[int, ...]
    """Bin i holds values from edges[i] to edges[i + 1] − 1, counted from 1."""

    sizes: tuple[float, ...]
    """Share of tokens in all bins so far. Words without a previous occurrence are in no bin of
    gaps; they are what is missing to 1."""

    differences: tuple[Difference, ...]
    """One for each model that is compared with the reference."""

    new_words: tuple[float, ...]
    """Of each difference, what falls to words without a previous occurrence (gaps only)."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return asdict(self)


def token_gaps(ids: NDArray[np.integer]) -> NDArray[np.int64]:
    """Distance of each token to the previous one of the same word; 0 where there is none."""
    order = np.argsort(ids, kind="stable")  # equal words together, in the order of the text
    again = ids[order][1:] == ids[order][:-1]
    gaps = np.zeros(len(ids), dtype=np.int64)
    gaps[order[1:][again]] = (order[1:] - order[:-1])[again]
    return gaps


def cache_effect(
    ids: NDArray[np.integer], losses: Mapping[str, NDArray[np.floating]], by: By
) -> CacheEffect:
    """Compare the losses of all tokens but the first under two or more models.

    `losses` maps names to one loss for each token after the first; the last is the reference.
    """
    *names, reference = losses
    values = ids[1:].astype(np.int64) + 1 if by == "tokens" else token_gaps(ids)[1:]
    edges = bin_edges(int(values.max()))
    number = np.digitize(values, edges) - 1  # −1: no gap
    inside = number >= 0
    count = len(values)

    def by_bin(weights: NDArray[np.floating]) -> tuple[float, ...]:
        sums = np.bincount(number[inside], weights[inside], minlength=len(edges) - 1)
        return tuple((np.cumsum(sums) / count).tolist())

    apart = [losses[name].astype(np.float64) - losses[reference] for name in names]
    return CacheEffect(
        by=by,
        tokens=count,
        edges=tuple(edges),
        sizes=by_bin(np.ones(count)),
        differences=tuple(
            Difference(name=name, reference=reference, cumulative=by_bin(difference))
            for name, difference in zip(names, apart, strict=True)
        ),
        new_words=tuple(float(difference[~inside].sum() / count) for difference in apart),
    )


def bin_edges(largest: int) -> Sequence[int]:
    """Whole numbers from 1 past `largest`, equally far apart on a logarithmic scale."""
    largest = max(1, largest)  # a text without any repeated word has no gap at all
    decades = np.log10(largest + 1)
    steps = np.logspace(0, decades, int(np.ceil(decades * BINS_A_DECADE)) + 1)
    edges = np.unique(np.round(steps).astype(np.int64))
    edges[-1] = largest + 1
    return [int(edge) for edge in edges]
