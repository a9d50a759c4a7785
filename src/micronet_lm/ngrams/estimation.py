"""Estimate a table of n-grams from counts, prune it to a budget, and quantize its values.

Values are by absolute discounting: a run of words that was seen c times after a context that was
seen n times has the value (c − D) / n, with a discount D for runs seen once, twice and more often,
after Chen and Goodman (1998). What is worth least is pruned: entries whose removal costs the
training text the fewest nats per entry.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from micronet_lm.errors import CorpusError
from micronet_lm.ngrams.counting import CountedOrder, Ids, count_orders
from micronet_lm.ngrams.table import Codes, NgramTable, TableOrder, table_bits

Doubles = NDArray[np.float64]
Kept = list[NDArray[np.bool_]]

ROUNDS = 30
"""Rounds of the search for levels and for the threshold of pruning."""


def estimate_table(
    ids: Ids,
    vocabulary: int,
    *,
    order: int,
    min_count: int,
    bits: int,
    budget: int | None = None,
    share: float = 0.5,
) -> NgramTable:
    """Return the table of a text; with a budget, the most useful one of at most so many bytes."""
    alone = np.bincount(np.asarray(ids), minlength=vocabulary).astype(np.float64)
    alone /= alone.sum()
    counted = list(count_orders(ids, vocabulary, order, min_count))
    while counted and not len(counted[-1].words):
        counted.pop()
    if not counted:
        raise CorpusError(
            f"no two words follow each other {min_count} times in the training split, so there is "
            "nothing for a table of n-grams: lower ngrams.min_count or leave the section out"
        )
    values = [_discounted(own) for own in counted]
    gains = _gains(counted, values, alone)

    def table(kept: Kept) -> NgramTable:
        return _table(counted, values, kept, alone, bits, share)

    def fits(kept: Kept) -> bool:
        sizes = [int(own.sum()) for own in kept]
        return budget is None or table_bits(vocabulary, bits, sizes) <= 8 * budget

    whole = _closed(counted, [np.ones(len(own), bool) for own in gains])
    if fits(whole):
        return table(whole)
    low, high = 0.0, (1 - 1e-9) * max(float(own.max()) for own in gains)
    if not fits(_above(counted, gains, high)):
        least = table_bits(vocabulary, bits, [1]) // 8 + 1
        raise CorpusError(
            f"ngrams.budget must be {least} bytes or more for {vocabulary} words, got {budget}: "
            "raise it"
        )
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(_above(counted, gains, middle)) else (middle, high)
    return table(_above(counted, gains, high))


def discounts(rare: tuple[int, int, int, int]) -> tuple[float, float, float]:
    """Return the discounts of runs seen once, twice and more often; small texts may lack some."""
    once, twice, thrice, often = (max(1, n) for n in rare)
    y = once / (once + 2 * twice)
    found = (1 - 2 * y * twice / once, 2 - 3 * y * thrice / twice, 3 - 4 * y * often / thrice)
    return tuple(  # type: ignore[return-value]
        min(max(own, 0.1), most) for own, most in zip(found, (0.9, 1.5, 2.0), strict=True)
    )


def _discounted(own: CountedOrder) -> Doubles:
    by_count = np.array([0.0, *discounts(own.rare)])
    less: Doubles = own.counts - by_count[np.minimum(own.counts, 3)]
    return less / own.totals[own.parents]


def _gains(
    counted: Sequence[CountedOrder], values: Sequence[Doubles], alone: Doubles
) -> list[Doubles]:
    """Return how many nats of the training text each entry is worth."""
    below, gains = alone, []
    for own, value in zip(counted, values, strict=True):
        left = 1 - np.bincount(own.parents, value, minlength=len(own.totals))
        without = left[own.parents] * below[own.suffixes]
        below = value + without
        gains.append(np.asarray(own.counts * np.log(below / without), np.float64))
    return gains


def _above(counted: Sequence[CountedOrder], gains: Sequence[Doubles], threshold: float) -> Kept:
    return _closed(counted, [own > threshold for own in gains])


def _closed(counted: Sequence[CountedOrder], kept: Kept) -> Kept:
    """Keep what longer n-grams that are kept begin with."""
    for number in range(len(counted) - 1, 0, -1):
        below = kept[number - 1].copy()
        below[counted[number].parents[kept[number]]] = True
        kept[number - 1] = below
    return kept


def _table(
    counted: Sequence[CountedOrder],
    values: Sequence[Doubles],
    kept: Kept,
    alone: Doubles,
    bits: int,
    share: float,
) -> NgramTable:
    chosen = [value[own] for value, own in zip(values, kept, strict=True)]
    levels = _levels(np.concatenate([alone[alone > 0], *chosen]), bits)
    orders, below = [], np.arange(len(alone))
    for own, which, value in zip(counted, kept, chosen, strict=True):
        if not which.any():
            break
        parents = below[own.parents[which]]  # numbers among the entries that are kept
        contexts = np.zeros(int(below.max()) + 1, bool)
        contexts[parents] = True
        last = np.append(parents[1:] != parents[:-1], True)
        codes = _fitting(_nearest(value, levels), levels, np.cumsum(last) - last)
        orders.append(TableOrder(contexts=contexts, last=last, words=own.words[which], codes=codes))
        below = np.where(which, np.cumsum(which) - 1, -1)
    return NgramTable(
        share=float(np.float32(share)),
        bits=bits,
        values=levels,
        unigrams=_fitting(_nearest(alone, levels), levels, np.zeros(len(alone), np.int64)),
        orders=orders,
    )


def _levels(values: Doubles, bits: int) -> NDArray[np.float32]:
    """Return 2^bits values, chosen so that the logarithms' squared errors by mass are small."""
    logs = np.sort(np.log(values))
    mass = np.exp(logs)
    levels = np.linspace(logs[0], logs[-1] + 1e-3, 2**bits)
    for _ in range(ROUNDS):
        number = np.searchsorted((levels[1:] + levels[:-1]) / 2, logs)
        total = np.bincount(number, mass, minlength=len(levels))
        middle = np.bincount(number, mass * logs, minlength=len(levels))
        levels = np.sort(np.where(total > 0, middle / np.where(total > 0, total, 1), levels))
        levels[0] = logs[0]  # so that rounding down is always possible
    found = np.exp(levels).astype(np.float32)
    for at in range(1, len(found)):  # strictly increasing, also where few values are there
        found[at] = max(found[at], np.nextafter(found[at - 1], np.float32(2)))
    return np.minimum(found, np.float32(1))


def _nearest(values: Doubles, levels: NDArray[np.float32]) -> Codes:
    logs = np.log(levels.astype(np.float64))
    with np.errstate(divide="ignore"):
        found = np.searchsorted((logs[1:] + logs[:-1]) / 2, np.log(values))
    return found.astype(np.uint8)


def _fitting(codes: Codes, levels: NDArray[np.float32], groups: NDArray[np.int64]) -> Codes:
    """Lower codes of groups whose values sum to more than 1, the largest codes first."""
    codes = codes.copy()
    while True:
        sums = np.bincount(groups, levels[codes].astype(np.float64))
        over = sums[groups] > 1
        if not over.any():
            return codes
        most = np.zeros(len(sums), np.uint8)
        np.maximum.at(most, groups, codes)
        lowered = over & (codes == most[groups]) & (codes > 0)
        if not lowered.any():
            raise CorpusError(
                f"a table of n-grams of {len(groups)} values cannot be rounded to {len(levels)} "
                "values whose sums are at most 1: raise ngrams.bits"
            )
        codes[lowered] -= 1
