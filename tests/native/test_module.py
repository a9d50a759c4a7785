"""The binding: arrays in and out, threads of Python, errors as this package's."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.shapes import ONE_LAYER

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES
from micronet_lm.errors import ArtifactError, InferenceError
from micronet_lm.runtime.engine import Floats
from micronet_lm.runtime.native import NativeEngine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(ONE_LAYER, Choice(cache=4, bits=9, places=CODE_PLACES)))
    return path


def test_the_distribution_goes_into_a_given_array(path: Path) -> None:
    session = NativeEngine(path).start()
    session.feed(3)
    room = np.zeros(50, np.float32)
    answer = session.log_distribution(room)
    assert np.shares_memory(answer, room)
    np.testing.assert_array_equal(room, session.log_distribution())
    with pytest.raises(InferenceError, match="must have one number for each word"):
        session.log_distribution(np.zeros(49, np.float32))


@pytest.mark.parametrize("kind", [list, tuple, np.int16, np.int64, np.uint8])
def test_ids_come_in_any_form(path: Path, kind: type) -> None:
    ids = [3, 49, 0, 7]
    given: Any = kind(ids) if kind in (list, tuple) else np.array(ids, kind)
    engine = NativeEngine(path)
    np.testing.assert_array_equal(engine.score(given), engine.score(np.array(ids, np.int32)))


@pytest.mark.parametrize("ids", [[3.5, 1], [[1, 2]], [1, 50], [1, -1], [1, 2**40], ["a", "b"], [1]])
def test_ids_that_are_none_are_refused(path: Path, ids: list[object]) -> None:
    with pytest.raises(InferenceError):
        NativeEngine(path).score(ids)  # type: ignore[arg-type]


def test_a_session_keeps_its_model(path: Path) -> None:
    session = NativeEngine(path).start()  # nobody else holds the engine
    path.unlink()
    session.feed(1)
    assert np.exp(session.log_distribution()).sum() == pytest.approx(1, abs=1e-5)


def test_threads_of_python_may_share_an_engine_and_even_a_session(path: Path) -> None:
    engine, shared = NativeEngine(path), NativeEngine(path).start()
    ids = np.arange(400) % 50
    wanted = engine.score(ids)
    got: list[Floats] = []

    def work() -> None:
        got.extend(engine.score(ids, threads=2) for _ in range(5))
        for token in ids[:100]:
            shared.feed(int(token))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 20
    for scores in got:
        np.testing.assert_array_equal(scores, wanted)
    assert shared.tokens == 400


def test_other_kernels_are_refused(path: Path) -> None:
    with pytest.raises((ArtifactError, InferenceError), match="auto, scalar, avx2 or avx512"):
        NativeEngine(path, kernels="mmx")


def test_a_session_of_another_model_is_refused(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    write_packed(other, random_model(ONE_LAYER, Choice(seed=9, cache=4)))
    session = NativeEngine(other).start()
    session.feed(1)
    with pytest.raises(InferenceError, match="another model"):
        NativeEngine(path).restore(session.save())
