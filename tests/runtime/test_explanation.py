"""Why a text surprised a model: the parts of each probability add up, votes name their words."""

import math
from pathlib import Path

import numpy as np
import pytest
from tests.support.engines import CACHED, ENGINES, INTEGERS
from tests.support.shapes import SMALL

import micronet_lm as mn
from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engines import Name, open_engine
from micronet_lm.runtime.explanation import explain

TEXT = "the a1 b2 the a1 , the a1 b2 unheard-of\nthe a1 b2 the a1"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("choice", [CACHED, INTEGERS], ids=["floats", "integers"])
def test_the_parts_make_the_probability(choice: Choice, engine: Name, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(SMALL, choice))
    lm = mn.load(path, engine)
    words = explain(lm, TEXT, expected=3, voters=4)
    assert "".join(word.piece for word in words) == lm.join(lm.encoder.tokens(TEXT))
    assert [word.known for word in words].count(False) == 1
    assert (words[0].log_probability, words[0].voters) == (None, ())
    scores = [score for _, score in lm.score(TEXT)]
    assert [word.log_probability for word in words[1:]] == scores
    for place, word in enumerate(words[1:], start=1):
        assert word.log_probability is not None
        assert word.without_cache is not None
        mixed = (1 - word.share) * math.exp(word.without_cache) + word.share * word.cache
        assert math.log(mixed) == pytest.approx(word.log_probability, abs=1e-4)
        assert len(word.expected) == 3
        assert all(voter < place for voter, _ in word.voters)
        assert len(word.voters) == min(4, place - 1)  # the first word follows no state
    assert words[1].share == 0  # nothing is in the cache yet


@pytest.mark.parametrize("name", ENGINES)
def test_votes_are_those_of_the_definition(name: Name, tmp_path: Path) -> None:
    """All votes of a place sum to 1, and those for its word to the cache's probability."""
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(SMALL, CACHED))
    ids = np.random.default_rng(0).integers(0, 6, 40).tolist()
    session = open_engine(path, name).start()
    for place in range(1, len(ids)):
        session.feed(ids[place - 1])
        found = session.influence(ids[place], 12)
        parts = [part for _, part in found.voters]
        assert parts == sorted(parts, reverse=True)
        if place > 1:
            assert math.fsum(parts) == pytest.approx(1)
        assert {voter for voter, _ in found.voters} == set(range(max(1, place - 12), place))
        own = math.fsum(part for voter, part in found.voters if ids[voter] == ids[place])
        assert own == pytest.approx(found.cache, abs=1e-6)
        assert session.influence(ids[place], 3).voters == found.voters[:3]


LONG = Choice(seed=6, cache=1200, ramp=700, fade=400, sparsity=0.3)
TABLE = Choice(seed=7, cache=50, ngrams=3, share=0.4, lam=0.3, theta=0.1)


@pytest.mark.skipif("native" not in ENGINES, reason="needs the native engine")
@pytest.mark.parametrize(
    "choice", [CACHED, INTEGERS, LONG, TABLE], ids=["floats", "integers", "long", "table"]
)
def test_both_engines_name_the_same_votes(choice: Choice, tmp_path: Path) -> None:
    """Also beyond the cache's size, across its blocks of 512, and for words of the session."""
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(SMALL, choice))
    engines = [open_engine(path, name) for name in ENGINES]
    size = engines[0].vocabulary_size
    ids = np.random.default_rng(1).integers(0, size, 1400 if choice is LONG else 130).tolist()
    sessions = [engine.start() for engine in engines]
    for session in sessions:
        assert session.add("unheard-of") == size
    ids[20] = ids[40] = size
    asked = {1, 2, 21, 30, 45, 511, 512, 513, 514, 1025, 1201, 1399, 129}
    for place in range(1, len(ids)):
        for session in sessions:
            session.feed(ids[place - 1])
        if place not in asked:
            continue
        for token in (ids[place], ids[place - 1], size):
            first, second = (session.influence(token, 1400) for session in sessions)
            assert first.without_cache == pytest.approx(second.without_cache, abs=1e-4)
            assert first.share == pytest.approx(second.share, rel=1e-12)
            assert first.cache == pytest.approx(second.cache, abs=1e-6)
            parts = [dict(one.voters) for one in (first, second)]
            assert parts[0].keys() == parts[1].keys()
            for voter, part in parts[0].items():
                assert part == pytest.approx(parts[1][voter], rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("name", ENGINES)
def test_questions_about_votes_that_have_no_answer(name: Name, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(SMALL, CACHED))
    session = open_engine(path, name).start()
    with pytest.raises(InferenceError, match="no token was fed"):
        session.influence(1, 2)
    session.feed(1)
    with pytest.raises(InferenceError, match="k must be 0 or more"):
        session.influence(1, -1)
    with pytest.raises(InferenceError, match="choose ids from 0 to"):
        session.influence(10**6, 2)
    assert session.influence(1, 5).voters == ()  # nothing was remembered yet
    session.feed(2)
    assert session.influence(1, 0).voters == ()


def test_a_model_without_a_cache_has_no_votes(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(SMALL, Choice(seed=1)))
    lm = mn.load(path)
    words = explain(lm, "the a1 b2")
    assert all((word.share, word.voters) == (0, ()) for word in words)
    assert words[2].without_cache == pytest.approx(words[2].log_probability, abs=1e-5)
    with pytest.raises(InferenceError, match="2 or more"):
        explain(lm, "the")
