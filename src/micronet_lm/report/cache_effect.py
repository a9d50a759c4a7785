"""The effect of a cache: the difference of two models' losses, token by token (section 5.2).

Tokens of a text are sorted into bins, by their word's rank in frequency or by the distance to the
word's previous occurrence. The difference and the bins' sizes are summed from bin to bin: if the
difference were spread evenly over all tokens, both sums would grow equally.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

By = Literal["tokens", "gaps"]

BINS_PER_DECADE = 12
"""Number of bins per decade of a logarithmic scale."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Difference of two models' losses, bin by bin."""

    name: str
    """The compared model."""

    reference: str
    """The reference model."""

    cumulative: tuple[float, ...]
    """Sum over all bins so far of (its loss − the reference's), in nats per token of the text."""


@dataclass(frozen=True, kw_only=True)
class CacheEffect:
    """The data of one figure."""

    by: By
    """Sort key of the tokens."""

    tokens: int
    """Number of predicted tokens."""

    edges: tuple[int, ...]
    """Bin i holds values from edges[i] to edges[i + 1] − 1, counted from 1."""

    sizes: tuple[float, ...]
    """Share of tokens in all bins so far. Words without a previous occurrence are in no bin of
    gaps, so that the last share may be below 1."""

    differences: tuple[Difference, ...]
    """One for each compared model."""

    new_words: tuple[float, ...]
    """Part of each difference from words without a previous occurrence (gaps only)."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Self:
        """Return the data that `as_json` gave."""
        differences = tuple(
            Difference(**{**own, "cumulative": tuple(own["cumulative"])})
            for own in tree["differences"]
        )
        lists = {key: tuple(tree[key]) for key in ("edges", "sizes", "new_words")}
        return cls(by=tree["by"], tokens=tree["tokens"], differences=differences, **lists)


def token_gaps(ids: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the distance of each token to the previous one of the same word; 0 if none."""
    order = np.argsort(ids, kind="stable")  # equal words together, in the order of the text
    again = ids[order][1:] == ids[order][:-1]
    gaps = np.zeros(len(ids), dtype=np.int64)
    gaps[order[1:][again]] = (order[1:] - order[:-1])[again]
    return gaps


def cache_effect(
    ids: NDArray[np.integer], losses: Mapping[str, NDArray[np.floating]], by: By
) -> CacheEffect:
    """Compare the losses of all tokens after the first under two or more models.

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
    """Return whole numbers from 1 past `largest`, evenly spaced on a logarithmic scale."""
    largest = max(1, largest)  # a text without any repeated word has no gap at all
    decades = np.log10(largest + 1)
    powers = np.logspace(0, decades, int(np.ceil(decades * BINS_PER_DECADE)) + 1)
    edges = np.unique(np.round(powers).astype(np.int64))
    edges[-1] = largest + 1
    return [int(edge) for edge in edges]
