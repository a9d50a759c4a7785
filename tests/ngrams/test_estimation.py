"""Tables of n-grams against counts and formulas in plain Python."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from micronet_lm.errors import CorpusError
from micronet_lm.ngrams import Lookup, NgramTable, estimate_table
from micronet_lm.ngrams.estimation import discounts

WORDS = 40
Ngram = tuple[int, ...]


@pytest.fixture(scope="module")
def text() -> list[int]:
    random = np.random.default_rng(3)
    phrases = [random.integers(0, WORDS, size).tolist() for size in (3, 4, 5, 6, 7, 2)]
    found = list(range(WORDS))
    for number in random.integers(0, len(phrases), 400):
        found += phrases[number] + (random.random(2) ** 2 * WORDS).astype(int).tolist()
    return found


def estimated(text: list[int], **changes: int | None) -> NgramTable:
    keys = {"order": 4, "min_count": 2, "bits": 8, **changes}
    return estimate_table(np.array(text), WORDS, share=0.25, **keys)  # type: ignore[arg-type]


def entries_of(table: NgramTable) -> dict[Ngram, float]:
    """Walk through the table's groups, in a way of their own: every n-gram with its value."""
    found: dict[Ngram, float] = {}
    below: list[Ngram] = [(word,) for word in range(len(table.unigrams))]
    for own in table.orders:
        contexts = iter([name for name, has in zip(below, own.contexts, strict=True) if has])
        below, context = [], None
        for word, code, last in zip(own.words, own.codes, own.last, strict=True):
            context = next(contexts) if context is None else context
            below.append((*context, int(word)))
            found[below[-1]] = float(table.values[code])
            context = None if last else context
        assert next(contexts, None) is None
    return found


def grams(text: list[int], length: int) -> Counter[Ngram]:
    return Counter(zip(*(text[at:] for at in range(length)), strict=False))


def discounted(text: list[int], ngram: Ngram) -> float:
    """The value of an n-gram by the formula, from raw counts."""
    counts = grams(text, len(ngram))
    seen = Counter(counts.values())
    y = seen[1] / (seen[1] + 2 * seen[2])
    times = counts[ngram]
    n = min(times, 3)
    discount = n - (n + 1) * y * seen[n + 1] / seen[n]
    followed = sum(c for own, c in counts.items() if own[:-1] == ngram[:-1])
    return (times - discount) / followed


def test_values_are_discounted_counts(text: list[int]) -> None:
    table = estimated(text)
    gaps = np.diff(np.log(table.values.astype(float)))
    found = entries_of(table)
    wanted = {own for k in (2, 3, 4) for own, times in grams(text, k).items() if times >= 2}
    assert set(found) == wanted
    for ngram in sorted(found)[::7]:
        exact = discounted(text, ngram)
        # the nearest value, or one less where its group's sum would pass 1
        assert abs(np.log(found[ngram] / exact)) <= gaps.max(), ngram


def test_probabilities_are_those_of_the_backoff_formula(text: list[int]) -> None:
    table = estimated(text, bits=4)
    held, lookup = entries_of(table), Lookup(table)
    alone = table.values[table.unigrams].astype(float)

    def chance(context: Ngram, word: int) -> float:
        if not context:
            return float(alone[word] + (1 - alone.sum()) / WORDS)
        group = {own[-1]: value for own, value in held.items() if own[:-1] == context}
        return group.get(word, 0.0) + (1 - sum(group.values())) * chance(context[1:], word)

    for at in range(0, len(text) - 4, 97):
        for length in (0, 1, 2, 3):
            read = text[at : at + length]
            logs = lookup.log_distribution(read)
            own = [chance(tuple(read), word) for word in range(WORDS)]
            assert sum(own) == pytest.approx(1)
            np.testing.assert_allclose(np.exp(logs.astype(float)), 0.25 * np.array(own), rtol=1e-5)
            for word in (0, 7, WORDS - 1):
                assert lookup.log_probability(read, word) == logs[word]


def test_longer_histories_than_the_order_change_nothing(text: list[int]) -> None:
    lookup = Lookup(estimated(text))
    np.testing.assert_array_equal(
        lookup.log_distribution(text[:9]), lookup.log_distribution(text[6:9])
    )


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_no_group_sums_to_more_than_one(text: list[int], bits: int) -> None:
    table = estimated(text, bits=bits, min_count=1)
    assert table.values[table.unigrams].astype(float).sum() <= 1
    for own in table.orders:
        values = table.values[own.codes].astype(float)
        for low, high in pairwise(own.starts):
            assert 0 < values[low:high].sum() <= 1


def test_a_budget_keeps_what_is_worth_most(text: list[int]) -> None:
    whole = estimated(text)
    sizes = []
    for budget in (100, 200, 300, 400):
        table = estimated(text, budget=budget, bits=4)
        assert table.stored_bits <= 8 * budget
        assert set(entries_of(table)) < set(entries_of(whole))
        sizes.append(sum(table.entries))
    assert sizes == sorted(set(sizes))
    kept = set(entries_of(estimated(text, budget=300, bits=4)))
    assert all(own[:-1] in kept for own in kept if len(own) > 2)  # a longer n-gram needs its begin
    random = np.random.default_rng(0)
    held = grams(text, 2)
    pairs = [own for own in kept if len(own) == 2]
    others = [own for own, n in held.items() if n >= 2 and own not in kept]
    drawn = random.choice(len(others), len(pairs))
    assert sum(held[own] for own in pairs) > sum(held[others[n]] for n in drawn)


def test_too_small_a_budget_and_too_little_text_are_refused(text: list[int]) -> None:
    with pytest.raises(CorpusError, match=r"ngrams.budget must be \d+ bytes or more .*got 30"):
        estimated(text, budget=30)
    with pytest.raises(CorpusError, match=r"lower ngrams\.min_count"):
        estimate_table(np.arange(WORDS), WORDS, order=3, min_count=2, bits=4)


def test_discounts_of_texts_without_rare_words_stay_within_bounds() -> None:
    for rare in ((0, 0, 0, 0), (1, 0, 0, 9), (100, 1, 50, 0), (7, 9, 3, 1)):
        one, two, more = discounts(rare)
        assert 0 < one < 1
        assert 0 < two < 2
        assert 0 < more < 3
