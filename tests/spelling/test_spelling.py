"""The spelling model: probabilities that sum to 1, its bytes, and what is refused."""

import math
from itertools import product

import pytest

from micronet_lm.errors import ArtifactError
from micronet_lm.spelling import Spelling, estimate
from micronet_lm.spelling.trie import END, Node, byte_of, count_of, pack

WORDS = ["a", "ab", "abba", "ba", "bab", "aab", "abab", "bbb"]
KNOWN = ["a", "bab", "bb"]


@pytest.mark.parametrize(("order", "budget"), [(1, 100), (2, 60), (3, 90), (5, 1000)])
def test_all_strings_outside_the_vocabulary_sum_to_one(order: int, budget: int) -> None:
    """Every string of two letters up to 7 long is enumerated; all bytes are tried at each place."""
    spelling = estimate(WORDS, KNOWN, order=order, budget=budget)
    assert len(spelling.data) <= budget
    longest, finished, elsewhere = 7, 0.0, 0.0
    for length in range(longest + 1):
        for letters in product(b"ab", repeat=length):
            text = bytes([END, *letters])
            reached = math.exp(
                sum(
                    math.log(spelling.chance(text[max(0, at - order + 1) : at], text[at]))
                    for at in range(1, len(text))
                )
            )
            context = text[max(0, len(text) - order + 1) :] if order > 1 else b""
            chances = [spelling.chance(context, symbol) for symbol in range(256)]
            assert sum(chances) == pytest.approx(1, abs=1e-12)
            word = bytes(letters).decode()
            if word and word not in KNOWN:
                finished += math.exp(spelling.log_probability(word))
            # Strings with other bytes, or longer ones: everything that is not enumerated.
            others = sum(c for s, c in enumerate(chances) if s not in b"ab\n")
            if length == longest:
                others += sum(chances[s] for s in b"ab")
            elsewhere += reached * others / spelling.outside
    assert finished + elsewhere == pytest.approx(1, abs=1e-9)


def test_the_bytes_of_the_format_page() -> None:
    root = Node(children={0x0A: Node(count=2), 0x61: Node(count=1)})
    data = pack(2, 1.0, [0x80, 0x80], root)
    assert data.hex() == "02000000000000f03f808002000a02006101" + "00"
    spelling = Spelling.from_bytes(data)
    # N = 3, T = 2, d = 1/2: a has (1 − 1/2)/3 + 1/3 · 1/256.
    assert spelling.chance(b"", 0x61) == pytest.approx(0.5 / 3 + 1 / 3 / 256)
    assert spelling.chance(b"\n", 0x0A) == pytest.approx(1.5 / 3 + 1 / 3 / 256)
    assert spelling.chance(b"x", 0x78) == pytest.approx(1 / 3 / 256)


def test_counts_in_a_byte_are_at_most_a_sixteenth_too_small() -> None:
    for count in [*range(300), 4711, 99_999, 500_000]:
        stored = count_of(byte_of(count))
        assert stored <= count < stored * 17 / 16 + 1
    assert [count_of(byte_of(count)) for count in range(32)] == list(range(32))
    assert count_of(byte_of(10**9)) == count_of(255) == 31 << 14


def test_it_learns_from_words_and_from_more_of_them_with_a_larger_budget() -> None:
    beginnings, ends = ("un", "re"), ("ing", "able", "ness")
    words = {
        first + middle + last for first in beginnings for middle in "abcdefgh" for last in ends
    }
    words.remove("rehness")
    spelled = [estimate(words, [], order=5, budget=budget) for budget in (80, 200, 2000)]
    held_out = [model.log_probability("rehness") for model in spelled]
    assert held_out[0] < held_out[1] < held_out[2]
    assert held_out[2] > spelled[2].log_probability("ssenher") + 10
    assert spelled[2].log_probability("Ω≈ç√") > -200  # any string has a probability


def test_a_known_word_takes_no_probability_from_others() -> None:
    with_known = estimate(WORDS, KNOWN, order=3, budget=500)
    without = estimate(WORDS, [], order=3, budget=500)
    lost = sum(math.exp(without.log_string(word)) for word in ["", *KNOWN])
    assert with_known.outside == pytest.approx(1 - lost, abs=1e-12)
    assert without.outside == pytest.approx(1 - math.exp(without.log_string("")), abs=1e-12)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data[:5], "too few"),
        (lambda data: b"\x00" + data[1:], "order 1 to 8, got 0"),
        (lambda data: b"\x09" + data[1:], "order 1 to 8, got 9"),
        (lambda data: data[:1] + b"\x00" * 8 + data[9:], "above 0"),
        (lambda data: data[:1] + b"\xff" * 8 + data[9:], "above 0"),
        (lambda data: data[:9] + b"\x00" + data[10:], "discount"),
        (lambda data: data[:11] + b"\x00" + data[12:], "at least one byte"),
        (lambda data: data[:-1], "truncated"),
        (lambda data: data + b"\x01", "1 bytes after its last node"),
        (lambda data: data[:14] + b"\x00" + data[15:], "without a count"),
        (lambda data: data[:13] + b"\x62" + data[14:], "out of order"),
    ],
)
def test_damaged_bytes_are_refused(change: object, why: str) -> None:
    root = Node(children={0x0A: Node(count=2), 0x61: Node(count=1)})
    data = pack(2, 1.0, [0x80, 0x80], root)
    with pytest.raises(ArtifactError, match=why):
        Spelling.from_bytes(change(data))  # type: ignore[operator]


def test_what_cannot_be_estimated_is_refused() -> None:
    with pytest.raises(ArtifactError, match="at least one word"):
        estimate([], [])
    with pytest.raises(ArtifactError, match="does not fit 20 bytes"):
        estimate(WORDS, [], budget=20)
    with pytest.raises(ArtifactError, match="order must be 1 to 8, got 9"):
        estimate(WORDS, [], order=9)
