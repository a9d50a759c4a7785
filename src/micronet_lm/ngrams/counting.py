"""Count the n-grams of a text of ids: how often each run of k words occurs, as a tree."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.integer[Any]]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedOrder:
    """All frequent runs of k words, ordered by their first k − 1 words, then by the last."""

    parents: Numbers
    """(m) number of the first k − 1 words in the order below; a word's id where k is 2."""
    words: Numbers
    """(m) the last word."""
    counts: Numbers
    """(m) how often the k words occur."""
    suffixes: Numbers
    """(m) number of the last k − 1 words in the order below."""
    totals: Numbers
    """How often each run of the order below is followed by any word."""
    rare: tuple[int, int, int, int]
    """How many different runs of k words occur once, twice, three and four times."""


def count_orders(ids: Ids, vocabulary: int, order: int, min_count: int) -> Iterator[CountedOrder]:
    """Count the runs of 2 to `order` words, shorter ones first.

    Runs that occur less than `min_count` times are left out.
    """
    words = np.asarray(ids).astype(np.int64)
    every = words  # number of the run of k − 1 words that begins at each place
    below, size = words, vocabulary  # the same among those that are kept, −1 for the others
    for k in range(2, order + 1):
        length = max(0, len(words) - k + 1)
        _, first, number, counts = np.unique(
            every[:length] * vocabulary + words[k - 1 :][:length],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        kept = counts >= min_count
        begins = first[kept]  # a place of each run that is kept: what it begins with is kept, too
        followed = below[:length]
        yield CountedOrder(
            parents=below[begins],
            words=words[begins + k - 1],
            counts=counts[kept],
            suffixes=below[begins + 1],
            totals=np.bincount(followed[followed >= 0], minlength=size),
            rare=tuple(int((counts == n).sum()) for n in (1, 2, 3, 4)),  # type: ignore[arg-type]
        )
        every, size = number, int(kept.sum())
        below = np.where(kept, np.cumsum(kept) - 1, -1)[number]
