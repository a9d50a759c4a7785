"""Sessions recall earlier texts: what it does to probabilities, in all engines alike."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.engines import CACHED, ENGINES, INTEGERS, Opener
from tests.support.shapes import SMALL

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Engine, Session
from micronet_lm.runtime.engines import open_engine
from micronet_lm.runtime.recollections import Recollections, halves

KINDS = [CACHED, INTEGERS, replace(CACHED, ngrams=3)]
THETA = 0.03125
NAMES = ["floats", "integers", "n-grams"]
READ = [5, 9, 3, 7, 7, 2, 5, 9, 11, 4, 3, 8]


@pytest.fixture(params=KINDS, ids=NAMES)
def engine(request: pytest.FixtureRequest, open_model: Opener) -> Engine:
    return open_model(
        random_model(SMALL, replace(request.param, tokenizer="word-2", lam=0.4, theta=THETA))
    )


def remembered(
    engine: Engine, *, state_share: float = 0.3, word_share: float = 0.2
) -> Recollections:
    """What a text of `READ` with two new words leaves."""
    session = engine.start()
    first = session.add("frob")
    session.feed_many([*READ[:6], first, *READ[6:]])
    states, following = session.remembered(10)
    return Recollections(
        states=halves(states),
        following=np.asarray(following, np.int32),
        words=("frob", "knob"),
        counts=(60, 140),
        state_share=state_share,
        word_share=word_share,
    )


def every(session: Session, engine: Engine) -> NDArray[np.float64]:
    new = [session.log_probability(engine.vocabulary_size + n) for n in range(session.added)]
    logs = np.concatenate([session.log_distribution(), np.array(new, np.float64)])
    return np.asarray(np.exp(logs), np.float64)


def test_states_and_words_that_are_remembered(engine: Engine) -> None:
    session = engine.start()
    assert session.remembered(5)[0].shape == (0, SMALL.width)
    session.feed_many(READ)
    states, following = session.remembered(100)
    assert states.shape == (11, SMALL.width)
    assert following.tolist() == READ[1:]
    newest, last = session.remembered(3)
    assert last.tolist() == READ[-3:]
    np.testing.assert_array_equal(newest, states[-3:])


def test_the_mixture_is_what_the_formula_says(engine: Engine) -> None:
    own = remembered(engine)
    plain, session = engine.start(), engine.start()
    session.recall(engine.recollect(own))
    for one in (plain, session):
        one.feed_many(READ[:4])
    size = engine.vocabulary_size
    assert session.word(size) == "frob"
    found = every(session, engine)
    assert found.sum() == pytest.approx(1, abs=2e-5)
    a, b = 0.3 * len(own.following) / 200, 0.2
    assert own.shares() == pytest.approx((a, b))
    # The states vote as a cache would: by exp(θ h·s), here computed from what a session remembers.
    query = engine.start()
    query.feed_many([*READ[:4], READ[4]])
    now = query.remembered(1)[0][0].astype(np.float64)
    votes = np.exp(THETA * (own.states.astype(np.float64) @ now))
    expected = (1 - a - b) * np.concatenate([np.exp(plain.log_distribution()), np.zeros(2)])
    np.add.at(expected, own.following, a * votes / votes.sum())
    expected[size:] += b * np.array([0.3, 0.7])
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-6)
    # Top k, completions and samples are of the same distribution.
    ids, logs = session.top_k(size)
    np.testing.assert_allclose(np.exp(logs), found[ids], rtol=1e-4, atol=1e-7)
    assert ids[0] == int(found.argmax())
    assert session.complete("kno", 3)[0].tolist() == [size + 1]
    drawn = [session.sample(u) for u in np.linspace(0, 0.999, 300)]
    assert drawn.count(size + 1) / 300 == pytest.approx(found[size + 1], abs=0.02)
    session.recall(None)
    np.testing.assert_allclose(session.log_distribution(), plain.log_distribution(), atol=1e-6)


def test_cache_and_recollections_vote_together(engine: Engine) -> None:
    session = engine.start()
    session.recall(engine.recollect(remembered(engine)))
    number = session.find("frob")
    assert number == engine.vocabulary_size
    session.feed(5)
    before = session.log_probability(number)
    session.feed_many([number, 7, number, 5])
    assert session.log_probability(number) > before
    assert every(session, engine).sum() == pytest.approx(1, abs=2e-5)


def test_forks_recall_and_saved_sessions_do_not(engine: Engine) -> None:
    session = engine.start()
    session.recall(engine.recollect(remembered(engine)))
    own = session.add("mine")
    session.feed_many([5, own, 7, own, 3])
    np.testing.assert_array_equal(session.fork().log_distribution(), session.log_distribution())
    saved = session.save()
    assert b"frob" not in saved
    assert b"knob" not in saved
    again = engine.restore(saved)
    assert again.added == 1
    assert again.word(engine.vocabulary_size) == "mine"
    plain = engine.start()
    new = plain.add("mine")
    plain.feed_many([5, new, 7, new, 3])
    np.testing.assert_array_equal(again.log_distribution(), plain.log_distribution())
    assert again.log_probability(new) == plain.log_probability(new)


def test_a_session_forgets_a_word(engine: Engine) -> None:
    session = engine.start()
    one, two = session.add("secret"), session.add("other")
    session.feed_many([5, one, 7, two, 3, one, 5])
    session.forget("secret")
    session.forget("never read")
    assert session.find("secret") is None
    assert session.word(one) == ""
    assert session.log_probability(one) == -math.inf
    assert session.complete("sec", 3)[0].tolist() == []
    assert one not in session.top_k(engine.vocabulary_size)[0]
    assert every(session, engine).sum() == pytest.approx(1, abs=2e-5)
    saved = session.save()
    assert b"secret" not in saved
    again = engine.restore(saved)
    assert again.log_probability(engine.vocabulary_size) == session.log_probability(two)
    assert session.add("secret") == two + 1  # typed again: a word like any other
    unknown = engine.find("<unk>")
    assert unknown is not None
    plain = engine.start()
    plain.add("nothing")
    assert plain.add("other") == two
    plain.feed_many([5, unknown, 7, two, 3, unknown, 5])
    np.testing.assert_allclose(session.log_distribution(), plain.log_distribution(), atol=1e-6)


def test_what_cannot_be_recalled(engine: Engine, open_model: Opener) -> None:
    own = remembered(engine)
    for wrong, why in (
        (replace(own, state_share=0.9, word_share=0.2), "together less than 1"),
        (replace(own, following=own.following[1:]), "needs the word that followed"),
        (replace(own, following=own.following + 9999), "outside the vocabulary"),
        (replace(own, states=np.full_like(own.states, np.inf)), "not finite"),
        (replace(own, counts=(1,)), "its count"),
        (
            replace(own, states=np.tile(own.states, (9, 1)), following=np.tile(own.following, 9)),
            "at most",
        ),
    ):
        with pytest.raises(InferenceError, match=why):
            engine.recollect(wrong)
    without = open_model(random_model(SMALL, Choice(seed=3)))
    with pytest.raises(InferenceError, match="no cache"):
        without.recollect(own)


@pytest.mark.parametrize("choice", KINDS, ids=NAMES)
def test_the_engines_agree(choice: Choice, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(SMALL, replace(choice, lam=0.3)))
    engines = [open_engine(path, name) for name in ENGINES]
    assert len({engine.checksum for engine in engines}) == 1
    own = remembered(engines[0], state_share=0.4)
    found = []
    for engine in engines:
        session = engine.start()
        session.recall(engine.recollect(own))
        session.feed_many([*READ, engine.vocabulary_size + 1, 5])
        found.append(every(session, engine))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=2e-3, atol=1e-6)
