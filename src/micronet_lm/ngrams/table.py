"""A table of n-grams as a packed file holds it: words after contexts, with quantized values.

The words after a context of k − 1 words are a group of order k. A context's words keep the share
that their values have, and the rest 1 − Σ values goes to the context without its first word: so
every distribution sums to 1, whatever the values were rounded to, and no backoff weight is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Words = NDArray[np.int64]
Codes = NDArray[np.uint8]

FULL = 32
"""Bits of a float."""


def word_bits(vocabulary: int) -> int:
    """Return the bits of a word's id in a table."""
    return int(vocabulary - 1).bit_length()


def table_bits(vocabulary: int, bits: int, entries: Sequence[int]) -> int:
    """Return the bits of a table with so many entries of each order from 2 on."""
    total: int = vocabulary * bits + FULL * (2**bits + 1)
    for below, own in pairwise((vocabulary, *(n for n in entries if n))):
        total += below + own * (word_bits(vocabulary) + bits + 1)
    return total


@dataclass(frozen=True, kw_only=True, eq=False)
class TableOrder:
    """The groups of one order, in the order of their contexts."""

    contexts: Mask
    """(entries of the order below, or words where that is the first) which of them have a group."""
    last: Mask
    """(m) whether an entry is the last of its group."""
    words: Words
    """(m) the words, increasing within a group."""
    codes: Codes
    """(m) numbers of their values."""

    @cached_property
    def starts(self) -> Words:
        """(groups + 1) where each group begins, and the end."""
        return np.concatenate([[0], np.flatnonzero(self.last) + 1])


@dataclass(frozen=True, kw_only=True, eq=False)
class NgramTable:
    """A table of n-grams and its share of the prediction."""

    share: float
    """The table's share of what the network predicts (s), a float32 between 0 and 1."""
    bits: int
    """Bits of a code, 2 to 8."""
    values: NDArray[np.float32]
    """(2^bits) the values that codes stand for, increasing, above 0 and at most 1."""
    unigrams: Codes
    """(V) codes of all words without a context."""
    orders: Sequence[TableOrder]
    """Orders 2, 3, …"""

    @property
    def order(self) -> int:
        """Number of words of the longest n-gram."""
        return len(self.orders) + 1

    @property
    def entries(self) -> tuple[int, ...]:
        """Number of entries of each order from 2 on."""
        return tuple(len(own.words) for own in self.orders)

    @property
    def stored_bits(self) -> int:
        """Bits in a file: codes, words, two masks per order, values and the share."""
        return table_bits(len(self.unigrams), self.bits, self.entries)

    def described(self) -> dict[str, Any]:
        """Return what a file's metadata say of the table."""
        return {"order": self.order, "bits": self.bits, "entries": list(self.entries)}
