"""Models with a table of n-grams: the engines agree, and probabilities sum to 1."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.shapes import ONE_BIN, UNEVEN, changed

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model, zipf_ids
from micronet_lm.config import CODE_PLACES, ModelConfig
from micronet_lm.errors import InferenceError
from micronet_lm.ngrams import Lookup
from micronet_lm.runtime.engine import Engine
from micronet_lm.runtime.engines import has_native, open_engine
from micronet_lm.runtime.native import NativeEngine, kernel_sets
from micronet_lm.runtime.reference import NumpyEngine

NARROW = changed(UNEVEN, context=3)
CASES = {
    "no-cache": (UNEVEN, Choice(seed=1, ngrams=3, share=0.4)),
    "cache": (UNEVEN, Choice(seed=2, ngrams=4, share=0.3, cache=50, lam=0.3, theta=0.1)),
    "ramp": (NARROW, Choice(seed=3, ngrams=5, share=0.6, cache=40, ramp=30, lam=0.4)),
    "integers": (
        UNEVEN,
        Choice(seed=4, ngrams=2, share=0.05, bits=6, cache=9, places=CODE_PLACES),
    ),
    "one-bin": (ONE_BIN, Choice(seed=5, ngrams=4, share=0.9, cache=12)),
}
ENGINES = ["numpy", *(["native"] if has_native() else [])]
needs_native = pytest.mark.skipif(not has_native(), reason="the native engine is not built")


@pytest.fixture(scope="module", params=CASES)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("ngrams") / f"{request.param}.safetensors"
    write_packed(file, random_model(*CASES[request.param]))
    return file


def text_of(engine: Engine, count: int) -> np.ndarray:
    return zipf_ids(np.random.default_rng(8), engine.vocabulary_size, count)


@needs_native
def test_scores_are_those_of_numpy_at_thousands_of_positions(path: Path) -> None:
    reference = NumpyEngine(path, chunk=97)
    ids = text_of(reference, 1300)
    scores = reference.score(ids)
    np.testing.assert_allclose(NumpyEngine(path).score(ids), scores, rtol=0, atol=1e-5)
    for kernels in (own.name for own in kernel_sets() if own.runs):
        engine = NativeEngine(path, kernels=kernels)
        np.testing.assert_allclose(engine.score(ids), scores, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(engine.score(ids, threads=3), engine.score(ids))
        np.testing.assert_array_equal(
            engine.score_batch([ids, ids[:9]], 2)[1], scores_of(engine, ids[:9])
        )


def scores_of(engine: Engine, ids: np.ndarray) -> np.ndarray:
    return engine.score(ids)


@pytest.mark.parametrize("name", ENGINES)
def test_sessions_sum_to_one_and_follow_scores(path: Path, name: str) -> None:
    engine = open_engine(path, name)  # type: ignore[arg-type]
    ids = text_of(engine, 160)
    scores, session, every = engine.score(ids), engine.start(), np.arange(engine.vocabulary_size)
    for at, token in enumerate(ids[:-1]):
        session.feed(int(token))
        logs = session.log_distribution()
        assert np.exp(logs.astype(np.float64)).sum() == pytest.approx(1, abs=2e-6)
        assert logs[ids[at + 1]] == pytest.approx(scores[at], abs=1e-5)
        assert session.log_probability(int(ids[at + 1])) == logs[ids[at + 1]]
        for k in (1, 3, len(every)):
            words, best = session.top_k(k)
            np.testing.assert_array_equal(words, np.lexsort((every, -logs))[:k])
            np.testing.assert_array_equal(best, logs[words])
        if at % 40 == 3:
            session = engine.restore(session.fork().save())
    together = engine.start()
    together.feed_many(ids[:70])
    together.feed_many(ids[70:-1])
    np.testing.assert_allclose(together.log_distribution(), logs, rtol=0, atol=1e-5)


@needs_native
def test_distributions_are_those_of_numpy(path: Path) -> None:
    native, reference = NativeEngine(path).start(), NumpyEngine(path).start()
    for token in text_of(NumpyEngine(path), 120):
        native.feed(int(token))
        reference.feed(int(token))
        np.testing.assert_allclose(
            native.log_distribution(), reference.log_distribution(), rtol=0, atol=1e-5
        )
        assert native.sample(0.3) == reference.sample(0.3)


@pytest.mark.parametrize("name", ENGINES)
def test_the_table_stands_between_softmax_and_cache(name: str, tmp_path: Path) -> None:
    """P = (1 − λ)((1 − s) P_softmax + s P_table) + λ P_cache, from models without the one part."""
    shape: ModelConfig = UNEVEN
    whole = Choice(seed=6, lam=0.3, theta=0.1, ngrams=3, cache=30, share=0.4)
    models = {
        "all": whole,
        "cache": replace(whole, ngrams=0),
        "table": replace(whole, cache=0),
        "none": replace(whole, ngrams=0, cache=0),
    }
    chances, table = {}, None
    for key, choice in models.items():
        model = random_model(shape, choice)
        table = model.ngrams or table
        write_packed(tmp_path / key, model)
        session = open_engine(tmp_path / key, name).start()  # type: ignore[arg-type]
        session.feed_many([5, 3, 9, 5, 3])
        chances[key] = np.exp(session.log_distribution().astype(np.float64))
    assert table is not None
    own = np.exp(Lookup(table).log_distribution([5, 3]).astype(np.float64))
    np.testing.assert_allclose(chances["table"], 0.6 * chances["none"] + own, rtol=1e-5)
    recalled = chances["cache"] - 0.7 * chances["none"]
    np.testing.assert_allclose(chances["all"], 0.7 * chances["table"] + recalled, rtol=2e-5)


@pytest.mark.parametrize("name", ENGINES)
def test_a_saved_session_with_a_word_out_of_range_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "m"
    write_packed(file, random_model(UNEVEN, Choice(ngrams=3)))
    engine = open_engine(file, name)  # type: ignore[arg-type]
    session = engine.start()
    session.feed_many([1, 2, 3])
    saved = session.save()
    with pytest.raises(InferenceError):
        engine.restore(saved[:-4])
    assert len(saved) != len(engine.start().save())
