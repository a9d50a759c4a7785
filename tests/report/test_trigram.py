"""The trigram baseline against the same formulas written with dictionaries, n-gram by n-gram."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from numpy.typing import NDArray

from micronet_lm.errors import CorpusError
from micronet_lm.report import trigram
from micronet_lm.report.trigram import Trigram

WORDS = 12
Gram = tuple[int, ...]


def text(tokens: int, seed: int = 0) -> NDArray[np.uint16]:
    """Words of which some are frequent, each drawn with a look at the one before."""
    random = np.random.default_rng(seed)
    ids = [0]
    for _ in range(tokens - 1):
        jump = int(random.geometric(0.4))
        ids.append((ids[-1] * 3 + jump) % (WORDS - 2))  # two words never occur
    return np.array(ids, np.uint16)


class Slow:
    """Interpolated modified Kneser-Ney as the paper writes it."""

    def __init__(self, ids: list[int]) -> None:
        three: Counter[Gram] = Counter(zip(ids, ids[1:], ids[2:], strict=False))
        two: Counter[Gram] = Counter(gram[1:] for gram in three)
        one: Counter[Gram] = Counter(gram[1:] for gram in two)
        self.counts = (one, two, three)
        self.discounts = [self._discounts(counts) for counts in self.counts]
        self.followers: list[dict[Gram, list[Gram]]] = []
        for counts in self.counts:
            found: defaultdict[Gram, list[Gram]] = defaultdict(list)
            for gram in counts:
                found[gram[:-1]].append(gram)
            self.followers.append(found)

    @staticmethod
    def _discounts(counts: Counter[Gram]) -> list[float]:
        n = [0, *(sum(c == k for c in counts.values()) for k in (1, 2, 3, 4))]
        if not (n[1] and n[2] and n[3]):
            return [0, 0.5, 1, 1.5]
        y = n[1] / (n[1] + 2 * n[2])
        raw = [k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3)]
        return [0, *(min(max(d, 0.01), k - 0.01) for k, d in enumerate(raw, 1))]

    def chance(self, context: Gram, word: int) -> float:
        below = self.chance(context[1:], word) if context else 1 / WORDS
        order = len(context)
        counts, discounts = self.counts[order], self.discounts[order]
        grams = self.followers[order].get(context, [])
        if not grams:
            return below
        total = sum(counts[gram] for gram in grams)
        freed = sum(discounts[min(counts[gram], 3)] for gram in grams)
        own = counts.get((*context, word), 0)
        return (own - discounts[min(own, 3)]) / total + freed / total * below


@pytest.mark.parametrize("tokens", [5, 40, 600])
def test_the_losses_are_those_of_the_formulas(tokens: int) -> None:
    learned, asked = text(tokens), np.append(text(80, seed=1), [10, 11, 3, 11])
    slow = Slow([int(word) for word in learned])
    ids = [int(word) for word in asked]
    expected = [
        -np.log(slow.chance(tuple(ids[max(0, place - 2) : place]), ids[place]))
        for place in range(1, len(ids))
    ]
    assert Trigram(learned, WORDS).losses(asked) == pytest.approx(expected)


@pytest.mark.parametrize("context", [[0, 1], [3, 4], [11, 2], [2, 11], [10, 11]])
def test_the_probabilities_of_all_words_sum_to_one(context: list[int]) -> None:
    model = Trigram(text(600), WORDS)
    chances = [np.exp(-model.losses(np.array([*context, w]))[-1]) for w in range(WORDS)]
    assert sum(chances) == pytest.approx(1)


def test_it_predicts_text_of_its_kind_better_than_frequencies_do() -> None:
    learned, asked = text(4000), text(1000, seed=1)
    shares = (np.bincount(learned, minlength=WORDS) + 1) / (len(learned) + WORDS)
    frequencies = float(np.exp(-np.log(shares[asked[1:]]).mean()))
    assert Trigram(learned, WORDS).perplexity(asked) < 0.8 * frequencies


def test_it_counts_no_more_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trigram, "LIMIT", 100)
    model = Trigram(text(600), WORDS)
    assert model.tokens == 100
    assert model.perplexity(text(50)) == Trigram(text(100), WORDS).perplexity(text(50))


def test_a_text_without_a_trigram_is_refused() -> None:
    with pytest.raises(CorpusError, match="needs 3 or more"):
        Trigram(np.array([1, 2]), WORDS)
