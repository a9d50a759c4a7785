"""Sessions and engines by ids: what they answer, and what they refuse."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.engines import CACHED, Opener
from tests.support.shapes import SMALL

from micronet_lm.artifact import PackedModel, Weights, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Engine, Session
from micronet_lm.runtime.reference import NumpyEngine

TEXT = np.random.default_rng(3).integers(0, 90, 60).tolist()


def after(engine: Engine, tokens: list[int]) -> Session:
    session = engine.start()
    session.feed_many(tokens)
    return session


def test_top_k_is_the_head_of_the_distribution(engine: Engine) -> None:
    session = after(engine, TEXT)
    whole = session.log_distribution()
    assert whole.shape == (90,)
    assert whole.dtype == np.float32
    room = np.empty(90, np.float32)
    assert session.log_distribution(room) is not None
    np.testing.assert_array_equal(room, whole)
    with pytest.raises(InferenceError):
        session.log_distribution(np.empty(89, np.float32))
    ranked = sorted(range(90), key=lambda number: (-whole[number], number))
    for k in (1, 5, 90, 1000):
        ids, scores = session.top_k(k)
        assert ids.tolist() == ranked[:k]
        np.testing.assert_allclose(scores, whole[ids], atol=1e-5)
    for token in (0, 30, 89):
        assert session.log_probability(token) == pytest.approx(float(whole[token]), abs=1e-5)


def test_ties_go_by_the_smaller_id(open_model: Opener) -> None:
    """All rows pruned and all biases alike: every word of a bin is as likely as the others."""
    model = random_model(SMALL, Choice(sparsity=1.0))
    tensors = dict(model.tensors)
    for number in range(3):
        name = f"softmax.biases.{number}"
        tensors[name] = Weights(values=np.zeros(tensors[name].size, np.float32))
    tensors["softmax.tail_weight"] = Weights(values=np.zeros((2, 16), np.float32))
    tensors["softmax.tail_bias"] = Weights(values=np.array([-9, -9], np.float32))
    session = after(open_model(replace(model, tensors=tensors)), [4])
    assert session.top_k(7)[0].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert session.top_k(25)[0].tolist()[:20] == list(range(20))


def test_complete_is_top_k_among_the_words_that_begin_so(engine: Engine) -> None:
    session = after(engine, TEXT)
    whole = session.log_distribution()
    words = [engine.word(number) for number in range(90)]
    for prefix in ("", "a", "a1", "日", "日本", "é", "<"):
        among = [number for number, word in enumerate(words) if word.startswith(prefix)]
        among.sort(key=lambda number: (-whole[number], number))
        assert among
        ids, scores = session.complete(prefix, 3)
        assert ids.tolist() == among[:3]
        np.testing.assert_allclose(scores, whole[ids], atol=1e-5)
    ids, scores = session.complete("no such word", 3)
    assert len(ids) == len(scores) == 0


def naive_sample(
    chances: list[float], u: float, temperature: float, top_k: int, top_p: float
) -> int:
    """The definition in `Session.sample`, step by step."""
    weights = {n: p ** (1 / temperature) for n, p in enumerate(chances)}
    ranked = sorted(weights, key=lambda n: (-weights[n], n))
    if top_k:
        ranked = ranked[:top_k]
    if top_p < 1:
        total, held, kept = sum(weights[n] for n in ranked), 0.0, []
        for number in ranked:
            kept.append(number)
            held += weights[number]
            if held >= top_p * total:
                break
        ranked = kept
    total, held = sum(weights[n] for n in ranked), 0.0
    for number in sorted(ranked):
        held += weights[number]
        if held > u * total:
            return number
    raise AssertionError


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (5, 1.0), (0, 0.5), (20, 0.8), (1, 0.01)])
def test_sampling_is_the_definition(
    engine: Engine, temperature: float, top_k: int, top_p: float
) -> None:
    session = after(engine, TEXT)
    chances = np.exp(session.log_distribution().astype(np.float64)).tolist()
    for u in np.random.default_rng(0).random(50).tolist():
        wanted = naive_sample(chances, u, temperature, top_k, top_p)
        assert session.sample(u, temperature, top_k, top_p) == wanted
    first = session.sample(0.0, temperature, top_k, top_p)
    assert first == naive_sample(chances, 0.0, temperature, top_k, top_p)


def test_a_fork_goes_on_by_itself(engine: Engine) -> None:
    session = after(engine, TEXT)
    twin, before = session.fork(), session.log_distribution()
    twin.feed(7)
    assert (session.tokens, twin.tokens) == (60, 61)
    np.testing.assert_array_equal(session.log_distribution(), before)
    session.feed(7)
    np.testing.assert_allclose(session.log_distribution(), twin.log_distribution(), atol=1e-6)
    assert not np.allclose(before, twin.log_distribution(), atol=1e-3)


def test_a_saved_session_goes_on_as_if_nothing_had_been(engine: Engine) -> None:
    for length in (0, 1, 3, 40):
        session = after(engine, TEXT[:length])
        again = engine.restore(session.save())
        assert again.tokens == length
        for one in (session, again):
            one.feed_many(TEXT[length : length + 5])
        np.testing.assert_allclose(session.log_distribution(), again.log_distribution(), atol=1e-6)


def test_foreign_and_damaged_sessions_are_refused(engine: Engine, open_model: Opener) -> None:
    saved = after(engine, TEXT[:20]).save()
    for length in range(0, len(saved), 7):
        with pytest.raises(InferenceError):
            engine.restore(saved[:length])
    random = np.random.default_rng(0)
    for _ in range(300):  # the NumPy engine took most of them, with other numbers
        flipped = bytearray(saved)
        flipped[int(random.integers(len(saved)))] ^= 1 << int(random.integers(8))
        with pytest.raises(InferenceError):
            engine.restore(bytes(flipped))
    foreign = open_model(random_model(SMALL, replace(CACHED, seed=99)))
    with pytest.raises(InferenceError):
        foreign.restore(saved)


def test_scores_do_not_depend_on_threads(engine: Engine) -> None:
    texts = [TEXT, TEXT[:2], TEXT[5:30], TEXT[::-1]]
    alone = [engine.score(text) for text in texts]
    assert [len(scores) for scores in alone] == [59, 1, 24, 59]
    for threads in (1, 2, 3):
        for own, other in zip(alone, engine.score_batch(texts, threads), strict=True):
            np.testing.assert_array_equal(own, other)
        np.testing.assert_array_equal(alone[0], engine.score(TEXT, threads))
    assert engine.score_batch([], 2) == []


def test_what_has_no_answer_is_refused(engine: Engine) -> None:
    session = engine.start()
    session.feed_many([])
    assert session.tokens == 0
    for early in (
        lambda: session.top_k(5),
        lambda: session.log_distribution(),
        lambda: session.log_probability(3),
        lambda: session.complete("a", 3),
        lambda: session.sample(0.5),
    ):
        with pytest.raises(InferenceError):
            early()
    session.feed(1)
    for question in (
        lambda: session.top_k(0),
        lambda: session.complete("a", -1),
        lambda: session.log_probability(90),
        lambda: session.log_probability(-1),
        lambda: session.sample(1.0),
        lambda: session.sample(-0.1),
        lambda: session.sample(0.5, temperature=0.0),
        lambda: session.sample(0.5, temperature=float("nan")),
        lambda: session.sample(0.5, top_k=-1),
        lambda: session.sample(0.5, top_p=0.0),
        lambda: session.sample(0.5, top_p=1.5),
        lambda: session.feed(90),
        lambda: session.feed(-1),
        lambda: session.feed_many([1, 2, 90]),
        lambda: engine.score([1]),
        lambda: engine.score([]),
        lambda: engine.score([1, 90]),
        lambda: engine.score([1, 2], 0),
        lambda: engine.score_batch([[1, 2], [3]]),
        lambda: engine.word(90),
        lambda: engine.word(-1),
    ):
        with pytest.raises(InferenceError):
            question()
    assert session.tokens == 1  # nothing of what was refused has been read


def test_words_and_ids(engine: Engine) -> None:
    assert engine.vocabulary_size == 90
    for number in range(90):
        assert engine.find(engine.word(number)) == number
    assert engine.find("日本") == 5
    assert engine.find("no such word") is None
    assert engine.find("") is None


def test_numbers_that_overflow_are_no_answer(tmp_path: Path) -> None:
    model: PackedModel = random_model(SMALL)
    tensors = dict(model.tensors)
    name = "blocks.0.outer.weight"
    tensors[name] = Weights(values=np.full_like(tensors[name].values, 1e38))
    write_packed(tmp_path / "m", replace(model, tensors=tensors))
    engine = NumpyEngine(tmp_path / "m")
    with pytest.raises(InferenceError):
        engine.start().feed(1)
    with pytest.raises(InferenceError):
        engine.score([1, 2, 3])


def test_what_the_numpy_engine_saved_without_a_checksum_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(SMALL, CACHED))
    engine = NumpyEngine(path)
    session = after(engine, TEXT[:9])
    again = engine.restore(session.save()[:-8])
    np.testing.assert_array_equal(again.log_distribution(), session.log_distribution())
