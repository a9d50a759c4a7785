"""A trigram model as a baseline: interpolated modified Kneser-Ney, counted on the train split.

P(w | u v) = (c(u v w) − D) / c(u v ·) + B(u v) · P(w | v), and the same for shorter contexts, down
to 1 / V. D is one of three discounts, for counts of 1, 2, and 3 or more; B is the mass that the
discounts set free. Below the trigrams, c counts the different words before an n-gram instead of its
occurrences (Chen and Goodman, 1999, section 3).

A split is one stream, as for the models: `<eos>` is a token like others, and every token after the
first is predicted once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from micronet_lm.errors import CorpusError
from micronet_lm.evaluation import perplexity

LIMIT = 10_000_000
"""Training tokens that are counted at most, the first ones: it keeps seconds and memory small."""

Keys = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class _Order:
    """The n-grams of one length; a key is the n-gram as a number in base V."""

    keys: Keys
    """All n-grams, sorted."""
    shares: Floats
    """(c − D) / c(context ·) of each."""
    contexts: Keys
    """All contexts, sorted; the empty one is 0."""
    backoff: Floats
    """B of each context."""

    def mixed(self, keys: Keys, contexts: Keys, below: Floats) -> Floats:
        """Interpolate with the probabilities of the order below."""
        share = _look_up(self.keys, self.shares, keys, 0.0)
        return share + _look_up(self.contexts, self.backoff, contexts, 1.0) * below


class Trigram:
    """A trigram model of word ids below `words`."""

    def __init__(self, ids: NDArray[np.integer], words: int) -> None:
        if len(ids) < 3:
            raise CorpusError(f"a text of {len(ids)} tokens has no trigram; it needs 3 or more")
        counted = ids[:LIMIT].astype(np.int64)
        self.tokens = len(counted)
        """Training tokens that were counted."""
        self._words = words
        grams = (counted[:-2] * words + counted[1:-1]) * words + counted[2:]
        three, counts = np.unique(grams, return_counts=True)
        two, before = np.unique(three % words**2, return_counts=True)
        one, before_one = np.unique(two % words, return_counts=True)
        self._three, self._two, self._one = (
            _order(keys, amounts, words)
            for keys, amounts in ((three, counts), (two, before), (one, before_one))
        )
        self.ngrams = len(three) + len(two) + len(one)
        """Different n-grams of all three lengths."""

    def losses(self, ids: NDArray[np.integer]) -> Floats:
        """Return the negative log-probability of each token after the first."""
        whole, size = ids.astype(np.int64), self._words
        word, last = whole[1:], whole[:-1]
        chances = self._one.mixed(word, np.zeros_like(word), np.full(len(word), 1 / size))
        chances = self._two.mixed(last * size + word, last, chances)
        pair = whole[:-2] * size + whole[1:-1]  # the first predicted token has no trigram
        chances[1:] = self._three.mixed(pair * size + whole[2:], pair, chances[1:])
        return np.asarray(-np.log(chances))

    def perplexity(self, ids: NDArray[np.integer]) -> float:
        """Return exp of the mean loss of a text."""
        return perplexity(float(self.losses(ids).mean()))


def _order(keys: Keys, counts: Keys, words: int) -> _Order:
    """Turn sorted n-grams and their counts into shares and backoff masses."""
    discount = _discounts(counts)[np.minimum(counts, 3)]
    contexts, place = np.unique(keys // words, return_inverse=True)
    total = np.bincount(place, counts)
    return _Order(
        keys=keys,
        shares=(counts - discount) / total[place],
        contexts=contexts,
        backoff=np.bincount(place, discount) / total,
    )


def _discounts(counts: Keys) -> Floats:
    """Return the discounts of counts 0 to 3, from how many n-grams have counts 1 to 4."""
    n1, n2, n3, n4 = (int(np.count_nonzero(counts == count)) for count in range(1, 5))
    if not (n1 and n2 and n3):
        return np.array([0, 0.5, 1, 1.5])  # too little text to estimate them
    y = n1 / (n1 + 2 * n2)
    found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    return np.array([0, *(min(max(d, 0.01), k - 0.01) for k, d in enumerate(found, 1))])


def _look_up(keys: Keys, values: Floats, asked: Keys, missing: float) -> Floats:
    place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return np.where(keys[place] == asked, values[place], missing)
