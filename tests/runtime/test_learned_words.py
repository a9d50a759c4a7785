"""The cache learns words: ids of a session, votes for them, and what carries them along."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.engines import CACHED, ENGINES, INTEGERS, Opener
from tests.support.shapes import SMALL

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import random_model
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Engine
from micronet_lm.runtime.engines import open_engine
from micronet_lm.runtime.model import LM

TABLE = replace(CACHED, ngrams=3)


@pytest.fixture(params=[CACHED, INTEGERS, TABLE], ids=["floats", "integers", "n-grams"])
def engine(request: pytest.FixtureRequest, open_model: Opener) -> Engine:
    return open_model(random_model(SMALL, replace(request.param, tokenizer="word-2", lam=0.4)))


def test_a_new_word_is_read_as_unknown_and_voted_for_by_itself(engine: Engine) -> None:
    size = engine.vocabulary_size
    unknown = engine.find("<unk>")
    assert unknown is not None
    ours, plain = engine.start(), engine.start()
    number = ours.add("frob")
    assert number == size == ours.add("frob")
    assert ours.add("knob") == size + 1
    assert (ours.word(size), ours.find("knob")) == ("frob", size + 1)
    assert ours.find("the") == engine.find("the")
    text = [5, number, 7, 3, number, 9, 5]
    ours.feed_many(text)
    plain.feed_many([unknown if token == number else token for token in text])
    # The network reads <unk>; all votes for it go to the word.
    with_votes = np.exp(plain.log_distribution())
    without = np.exp(ours.log_distribution())
    votes = math.exp(ours.log_probability(number))
    assert votes > 0.01
    assert without[unknown] + votes == pytest.approx(with_votes[unknown], abs=1e-5)
    others = np.arange(size) != unknown
    np.testing.assert_allclose(without[others], with_votes[others], rtol=1e-4, atol=1e-7)
    # Vocabulary and learned words sum to 1.
    assert without.sum() + votes == pytest.approx(1, abs=1e-5)
    assert ours.log_probability(size + 1) == -math.inf  # added, not read


def test_it_is_predicted_completed_and_drawn(engine: Engine) -> None:
    session = engine.start()
    number = session.add("frobnicator")
    session.feed_many([5, *[number, 7] * 6, 5])
    ids, logs = session.top_k(engine.vocabulary_size)
    assert number in ids
    place = ids.tolist().index(number)
    assert logs[place] == pytest.approx(session.log_probability(number), abs=1e-5)
    assert (np.diff(logs) <= 1e-6).all()
    found, _ = session.complete("frob", 5)
    assert found.tolist() == [number]
    drawn = [session.sample(u) for u in np.linspace(0, 0.999, 400)]
    share = drawn.count(number) / len(drawn)
    assert share == pytest.approx(math.exp(session.log_probability(number)), abs=0.02)
    assert session.sample(0.999, top_k=3) in ids[:3]


def test_forks_and_saved_sessions_carry_words_along(engine: Engine) -> None:
    session = engine.start()
    number = session.add("Ωmega")
    session.feed_many([5, number, 7, number])
    for other in (session.fork(), engine.restore(session.save())):
        assert other.word(number) == "Ωmega"
        assert other.log_probability(number) == session.log_probability(number)
        other.add("more")
        other.feed_many([number, number + 1])
        assert session.find("more") is None
    with pytest.raises(InferenceError):
        engine.restore(session.save()[:-3])


def test_what_is_refused(engine: Engine) -> None:
    session = engine.start()
    for nothing in ("", "a\nb"):
        with pytest.raises(InferenceError, match="must not be empty or contain a line feed"):
            session.add(nothing)
    with pytest.raises(InferenceError):
        session.feed(engine.vocabulary_size)
    with pytest.raises(InferenceError):
        session.word(engine.vocabulary_size)
    with pytest.raises(InferenceError):
        engine.score_open([5, engine.vocabulary_size], [])


@pytest.mark.parametrize("choice", [CACHED, INTEGERS, TABLE], ids=["floats", "integers", "n-grams"])
def test_the_engines_agree_on_texts_with_new_words(choice: object, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(SMALL, choice))  # type: ignore[arg-type]
    random, scores = np.random.default_rng(0), []
    text, spelled = random.integers(64, size=700), [-9.0, -17.5, -4.0]
    for name in ENGINES:
        engine = open_engine(path, name)
        size = engine.vocabulary_size
        ids = np.where(random.permutation(700) < 0, text, text % size)
        ids[::9], ids[::31], ids[5] = size, size + 1, size + 2
        ids[7] = engine.find("<unk>") or 0
        scores.append(engine.score_open(ids, spelled))
        session = engine.start()
        for word in ("one", "two", "three"):
            session.add(word)
        session.feed_many(ids[:300])
        both = [session.log_probability(n) for n in (size, engine.find("<unk>") or 0)]
        own = np.logaddexp(both[0], both[1] + spelled[0])
        following = [*ids[:300].tolist(), size]
        assert engine.score_open(following, spelled)[-1] == pytest.approx(own, abs=1e-4)
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=2e-4)


def test_a_state_learns_words_and_writes_them(open_model: Opener) -> None:
    choice = replace(CACHED, tokenizer="word-2", lam=0.9, theta=0.001)
    lm = LM(open_model(random_model(SMALL, choice)))
    state = lm.start()
    state.feed("the frobnicator " * 6)
    assert state.complete("frob")[0].word == "frobnicator"
    assert "frobnicator" in [word for word, _ in state.top_k(3)]
    assert state.logprob("frobnicator") > math.log(0.1)
    with pytest.raises(InferenceError, match="not in the vocabulary"):
        state.logprob("unheard")
    twin = lm.restore(state.save())
    assert twin.top_k(3) == state.top_k(3)
    assert "frobnicator" in "".join(twin.write(40, seed=1))


def test_a_model_without_a_cache_learns_nothing(open_model: Opener) -> None:
    lm = LM(open_model(random_model(SMALL, replace(CACHED, cache=0, tokenizer="word-2"))))
    state = lm.start()
    state.feed("the frobnicator " * 3)
    assert state.complete("frob") == []
