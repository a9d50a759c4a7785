"""Probabilities of a table of n-grams: docs/arithmetic.md, in NumPy."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from micronet_lm.ngrams.table import NgramTable, TableOrder

Floats = NDArray[np.float32]


class _Order:
    """The groups of one order, with where they begin and what they leave to shorter contexts."""

    def __init__(self, own: TableOrder, values: Floats) -> None:
        self.words, self.values = own.words, values[own.codes]
        self.groups = np.where(own.contexts, np.cumsum(own.contexts) - 1, -1)
        starts = own.starts
        self.bounds = list(pairwise(starts.tolist()))
        sums = [float(np.cumsum(self.values[a:b], dtype=np.float64)[-1]) for a, b in self.bounds]
        self.left = [1.0 - one for one in sums]

    def find(self, group: int, word: int) -> int:
        """Return the number of a word's entry in a group, or −1."""
        begin, end = self.bounds[group]
        at = begin + int(np.searchsorted(self.words[begin:end], word))
        return at if at < end and self.words[at] == word else -1


class Lookup:
    """A table that is ready to be asked."""

    def __init__(self, table: NgramTable) -> None:
        self.order, self.share = table.order, float(np.float32(table.share))
        alone = table.values[table.unigrams]
        rest = 1.0 - float(np.cumsum(alone, dtype=np.float64)[-1])
        self._alone: Floats = (alone.astype(np.float64) + rest / len(alone)).astype(np.float32)
        self._orders = [_Order(own, table.values) for own in table.orders]

    def log_distribution(self, read: Sequence[int]) -> Floats:
        """Return log(s · P_table) of all words after the last words that were read: (V)."""
        weights, found = self._contexts(read)
        result = self._alone * weights[0]
        for weight, (order, group) in zip(weights[1:], found, strict=True):
            begin, end = order.bounds[group]
            result[order.words[begin:end]] += order.values[begin:end] * weight
        logs: Floats = _log(result)
        return logs

    def log_probability(self, read: Sequence[int], word: int) -> np.float32:
        """Return log(s · P_table) of one word."""
        weights, found = self._contexts(read)
        result = self._alone[word] * weights[0]
        for weight, (order, group) in zip(weights[1:], found, strict=True):
            at = order.find(group, word)
            if at >= 0:
                result += order.values[at] * weight
        return np.float32(_log(np.array([result], np.float32))[0])

    def _contexts(self, read: Sequence[int]) -> tuple[list[np.float32], list[tuple[_Order, int]]]:
        """Return the weights of the words alone and of each context that has a group, with those.

        A context's weight is s times what all longer contexts leave.
        """
        found = []
        for length in range(1, min(len(self._orders), len(read)) + 1):
            group = self._group(read[len(read) - length :])
            if group >= 0:
                found.append((self._orders[length - 1], group))
        weight, weights = self.share, []
        for order, group in reversed(found):
            weights.append(np.float32(weight))
            weight *= order.left[group]
        weights.append(np.float32(weight))
        return weights[::-1], found

    def _group(self, context: Sequence[int]) -> int:
        """Return the number of a context's group, or −1."""
        node = int(context[0])
        for order, word in zip(self._orders, context[1:], strict=False):
            group = int(order.groups[node])
            node = order.find(group, int(word)) if group >= 0 else -1
            if node < 0:
                return -1
        return int(self._orders[len(context) - 1].groups[node])


def mix_table(log_softmax: Floats, log_table: Floats, share: float) -> Floats:
    """Return log((1 − s) P_softmax + s P_table), given log(s · P_table)."""
    mixed: Floats = np.logaddexp(log_softmax + np.float32(np.log1p(-share)), log_table)
    return mixed


def _log(chances: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(chances)
