"""Suggestions as people expect them: case, typing errors, and what they replace."""

from dataclasses import replace

import pytest
from tests.support.engines import CACHED, Opener
from tests.support.shapes import SMALL

from micronet_lm.artifact.random_model import random_model
from micronet_lm.runtime.model import LM, load
from micronet_lm.runtime.typos import ERROR, NEAR, SLIP, Beginnings

WORDS = ["return", "returns", "dictionary", "directory", "The", "the", "then", "None", "colour"]


def distance(typed: str, meant: str) -> float:
    """Weighted edit distance of the module's text, by dynamic programming over whole strings."""
    rows = {(0, 0): 0.0}
    for i in range(len(typed) + 1):
        for j in range(len(meant) + 1):
            ways = [rows[0, 0]] if i == j == 0 else []
            if i and j:
                same = typed[i - 1] == meant[j - 1]
                slip = SLIP if (typed[i - 1], meant[j - 1]) in NEAR else ERROR
                ways.append(rows[i - 1, j - 1] + (0 if same else slip))
            if i:
                ways.append(rows[i - 1, j] + ERROR)
            if j:
                ways.append(rows[i, j - 1] + ERROR)
            if (
                i > 1
                and j > 1
                and typed[i - 2 : i] == meant[j - 1] + meant[j - 2] != typed[i - 1] * 2
            ):
                ways.append(rows[i - 2, j - 2] + SLIP)
            rows[i, j] = min(ways)
    return rows[len(typed), len(meant)]


@pytest.mark.parametrize(
    "typed", ["retirn", "rteurn", "retun", "returrn", "colpur", "thn", "dirctiory"]
)
def test_near_beginnings_are_those_within_the_distance(typed: str) -> None:
    """Against an independent computation, for beginnings that keep the first letter."""
    words = [word.lower() for word in WORDS]
    for limit in (0.5, 1.0, 2.0):
        found = Beginnings(words).near(typed, limit, visits=10**6)
        every = {word[:n] for word in words for n in range(1, len(word) + 1) if word[0] == typed[0]}
        assert {word for word in found if word[0] == typed[0]} <= every
        assert all(found[word] == distance(typed, word) for word in found)
        for word in every:  # what begins with a shorter beginning is found by that
            parts = [word[:n] for n in range(1, len(word) + 1)]
            wanted = min(distance(typed, part) for part in parts)
            best = min((found[part] for part in parts if part in found), default=None)
            assert best == (wanted if wanted <= limit else None), word


def test_keys_that_touch() -> None:
    assert {("a", "q"), ("s", "w"), ("s", "e"), ("s", "z"), ("s", "x"), ("s", "d")} <= NEAR
    assert not {("q", "p"), ("s", "s"), ("s", "r"), ("s", "c"), ("a", "e")} & NEAR
    assert all((b, a) in NEAR for a, b in NEAR)


@pytest.fixture
def lm(open_model: Opener) -> LM:
    model = random_model(SMALL, replace(CACHED, tokenizer="word-2"))
    kept = {"<unk>", "<eos>", "the", "."}
    new = iter([*(word for word in WORDS if word != "the"), "."])
    words = [word if word in kept else next(new, word) for word in model.words]
    assert {*WORDS, "<unk>", "<eos>", "."} <= set(words)
    return LM(open_model(replace(model, words=words)))


def test_what_a_suggestion_replaces(lm: LM) -> None:
    assert lm.suggest("the ret").replaces == "ret"
    assert lm.suggest("the ").replaces == ""
    assert lm.suggest("").replaces == ""
    for text in ("the ret", "the RET"):
        found = lm.suggest(text)
        assert text.removesuffix(found.replaces) == "the "
        assert found[0].word.startswith(found.replaces)


def test_typing_errors_are_forgiven_when_little_begins_so(lm: LM) -> None:
    assert {word for word, _ in lm.suggest("the retirn", 2)} == {"return", "returns"}
    assert lm.suggest("the Rteurn", 1)[0].word.startswith("Return")
    assert lm.suggest("the dictoinarry", 1)[0].word == "dictionary"  # two errors
    assert lm.suggest("the xq", 3) == []  # too short to guess at
    # What begins exactly so comes first, whatever is likelier.
    found = [word for word, _ in lm.suggest("the dic", 3)]
    assert found[0] == "dictionary"


def test_sentences_begin_with_a_capital(lm: LM) -> None:
    for text in ("", "the return. "):
        shown = [word for word, _ in lm.suggest(text, 8)]
        assert not [word for word in shown if word.isalpha() and word.islower()]
        assert len(set(shown)) == len(shown) == 8
    shown = [word for word, _ in lm.suggest("the return ", 8)]
    assert [word for word in shown if word.isalpha() and word.islower()]


def test_learned_words_are_offered_with_errors_too(lm: LM) -> None:
    state = lm.start()
    state.feed("the frobnicator and the frobnicator and the ")
    state.feed("frobmic")
    assert state.suggest(1)[0].word == "frobnicator"


def test_hostile_learned_words_do_no_harm(lm: LM) -> None:
    """The last character of all, and words beyond any recursion's depth."""
    found = Beginnings(["ab\U0010ffff", "abc", "x" * 5000]).near("abd", 1.0)
    assert found["abc"] == 0.5  # c and d touch
    state = lm.start()
    state.feed(f"the {'x' * 5000} and {'x' * 4999}")
    assert state.suggest(3)[0].word == "x" * 5000


def test_no_tokens_that_are_no_words() -> None:
    lm = load("demo")
    for text in ("", "Return a", "Return a ", "Return a new\n", "the <u", "the <e"):
        shown = [word for word, _ in lm.suggest(text, 20)]
        assert not {"<unk>", "<eos>"} & set(shown)
        assert len(set(shown)) == len(shown)
