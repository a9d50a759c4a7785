"""Text that a model writes: tokens with their log-probabilities, and where it stops."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines import CACHED, Opener
from tests.support.shapes import SMALL

from micronet_lm.artifact.random_model import random_model
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.model import LM
from micronet_lm.runtime.stopping import StopStrings, before_stop


@pytest.fixture
def lm(open_model: Opener) -> LM:
    return LM(open_model(random_model(SMALL, CACHED)))


@given(
    pieces=st.lists(st.text("abc", max_size=4), max_size=8),
    stop=st.lists(st.text("abc", min_size=1, max_size=3), max_size=3),
)
def test_text_ends_before_the_first_stop_string(pieces: list[str], stop: list[str]) -> None:
    text = "".join(pieces)
    shown = "".join(before_stop(iter(pieces), stop))
    # The stop string that is complete first ends the text, as in a stream that cannot look ahead.
    for end in range(len(text) + 1):
        places = [text[:end].find(one) for one in stop if one in text[:end]]
        if places:
            # Pieces come whole: another stop string may begin earlier in the same piece.
            whole = next(n for n in range(len(pieces) + 1) if len("".join(pieces[:n])) >= end)
            seen = "".join(pieces[:whole])
            assert shown == seen[: min(seen.find(one) for one in stop if one in seen)]
            return
    assert shown == text


def test_what_may_begin_a_stop_string_is_held_back() -> None:
    strings = StopStrings(["\n\n"])
    assert [strings.take("one\n"), strings.take("two"), strings.take("\n")] == ["one", "\ntwo", ""]
    assert strings.rest() == "\n"
    for wrong in ("ab", ["a", ""]):
        with pytest.raises(InferenceError):
            StopStrings(wrong)


def test_generation_stops(lm: LM) -> None:
    pieces = list(lm.generate("the a1", max_tokens=12, seed=3))
    stop = next(piece.strip() for piece in pieces[5:] if piece.strip())
    stopped = "".join(lm.generate("the a1", max_tokens=12, seed=3, stop=[stop]))
    assert stopped == "".join(pieces).partition(stop)[0]
    with pytest.raises(InferenceError, match="one string"):
        lm.generate("the", stop=stop)


def test_a_space_at_the_end_of_a_text_is_not_written_twice(open_model: Opener) -> None:
    lm = LM(open_model(random_model(SMALL, replace(CACHED, tokenizer="word-2"))))
    after_word = list(lm.generate("the a1", max_tokens=3, seed=3))
    after_space = list(lm.generate("the a1 ", max_tokens=3, seed=3))
    assert after_word[0].startswith(" ")
    assert after_space == [after_word[0][1:], *after_word[1:]]


def test_tokens_come_with_what_the_model_expected(lm: LM) -> None:
    found = list(lm.begun("the a1").write_tokens(6, temperature=2.0, seed=1, alternatives=3))
    assert [each.piece for each in found] == list(lm.generate("the a1", 6, 2.0, seed=1))
    state = lm.after("the a1")
    for each in found:
        assert each.log_probability == pytest.approx(state.logprob(each.token), abs=1e-5)
        best = state.top_k(3, special=True)
        assert list(each.alternatives.values()) == pytest.approx(
            [math.log(chance) for _, chance in best], abs=1e-5
        )
        state.feed_words([each.token])
    plain = next(lm.begun("the").write_tokens(1))
    assert (plain.log_probability, plain.alternatives) == (None, {})


def test_reading_tells_the_same_numbers_as_scoring(lm: LM) -> None:
    text = "the a1 , b2 unheard-of\nthe a1"
    tokens = lm.encoder.tokens(text)
    found = list(lm.start().read_tokens(tokens, 2))
    assert found[0].log_probability is None
    scores = [score for _, score in lm.score(text)]
    assert [each.log_probability for each in found[1:]] == pytest.approx(scores, abs=1e-5)
    assert "".join(each.piece for each in found) == lm.join(tokens)
    for each in found[1:]:  # clients take equal numbers for 'this was the likeliest'
        is_likeliest = each.log_probability == max(each.alternatives.values())
        shown = " <unk>" if each.token.startswith("unheard") else each.piece
        assert is_likeliest == (shown == next(iter(each.alternatives)))
