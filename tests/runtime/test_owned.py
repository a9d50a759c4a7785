"""What a caller gives is copied before it is checked, and what cannot be filled is refused."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
from tests.support.engines import ENGINES, INTEGERS
from tests.support.shapes import LEAST_NATIVE

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import random_model
from micronet_lm.errors import ArtifactError, InferenceError
from micronet_lm.runtime.engine import Engine
from micronet_lm.runtime.engines import Name, has_native, open_engine

needs_native = pytest.mark.skipif(not has_native(), reason="needs the native engine")


@pytest.fixture
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    name: Name = getattr(request, "param", "native")
    path = tmp_path_factory.mktemp("owned") / "model.safetensors"
    write_packed(path, random_model(LEAST_NATIVE, INTEGERS))
    return open_engine(path, name)


@needs_native
def test_an_array_that_another_thread_changes_is_read_as_it_was_once(engine: Engine) -> None:
    """It was checked, changed, and then read: a segmentation fault.

    NumPy fills and copies up to 500 numbers without giving up Python's lock, so that a copy has
    one value in all places. The engine gives the lock up: an array that it read itself would have
    both values, and scores of its own.
    """
    size, values = 400, (1, 2)
    exact = [engine.score(np.full(size, value, np.int32)).tobytes() for value in values]
    ids = np.full(size, values[0], np.int32)
    stop, changes = threading.Event(), 0

    def change() -> None:
        nonlocal changes
        while not stop.is_set():
            ids.fill(values[1])
            ids.fill(values[0])
            changes += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            assert engine.score(ids).tobytes() in exact
            session = engine.start()
            session.feed_many(ids)
    finally:
        stop.set()
        thread.join(60)
    assert changes


@needs_native
def test_an_array_that_another_thread_spoils_does_no_harm(engine: Engine) -> None:
    ids = np.zeros(20_000, np.int32)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            ids[:] = 2**30
            ids[:] = 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(30):
            session = engine.start()
            try:
                session.feed_many(ids)
                engine.score(ids[:2000])
            except InferenceError as error:
                assert str(2**30) in str(error) or "one less than" in str(error)
    finally:
        stop.set()
        thread.join(60)


class Keeps:
    """An array-like object that gives its own array away, though a copy is asked for."""

    def __init__(self, ids: np.ndarray) -> None:
        self.ids = ids

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self.ids


@needs_native
def test_what_an_array_like_object_keeps_is_copied_too(engine: Engine) -> None:
    """NumPy believes an object that says it has made a copy."""
    size, values = 400, (1, 2)
    exact = [engine.score(np.full(size, value, np.int32)).tobytes() for value in values]
    kept = Keeps(np.full(size, values[0], np.int32))
    assert np.shares_memory(np.array(kept), kept.ids)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            kept.ids.fill(values[1])
            kept.ids.fill(values[0])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            assert engine.score(kept).tobytes() in exact  # type: ignore[arg-type]
    finally:
        stop.set()
        thread.join(60)


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_an_array_that_cannot_be_filled_is_refused(engine: Engine) -> None:
    """A converted copy was filled, and the caller's array stayed as it was."""
    session = engine.start()
    session.feed(1)
    size = engine.vocabulary_size
    fixed = np.zeros(size, np.float32)
    fixed.flags.writeable = False
    wide = np.zeros(2 * size, np.float32)
    for out in (np.zeros(size), wide[::2], fixed, wide, np.zeros((1, size), np.float32), [0.0]):
        with pytest.raises(InferenceError) as caught:
            session.log_distribution(out)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
    room = np.zeros(size, np.float32)
    assert session.log_distribution(room) is room
    assert np.array_equal(room, session.log_distribution())


@needs_native
def test_no_signature_of_the_binding_reaches_a_user(engine: Engine) -> None:
    session = engine.start()
    session.feed(1)
    asked: list[Callable[[], object]] = [
        lambda: session.feed("a"),  # type: ignore[arg-type]
        lambda: session.feed(2**40),
        lambda: session.feed(np.zeros((2, 2))),  # type: ignore[arg-type]  # shown in two lines
        lambda: session.recall(1),
        lambda: session.top_k(None),  # type: ignore[arg-type]
        lambda: session.complete(b"x", 1),  # type: ignore[arg-type]
        lambda: session.sample("x"),  # type: ignore[arg-type]
        lambda: engine.restore("text"),  # type: ignore[arg-type]
        lambda: engine.word("x"),  # type: ignore[arg-type]
        lambda: engine.find(3),  # type: ignore[arg-type]
    ]
    for ask in asked:
        with pytest.raises((InferenceError, ArtifactError)) as caught:
            ask()
        told = str(caught.value)
        assert "\n" not in told
        assert "incompatible" not in told
        assert "nanobind" not in told
        assert "wrong type or are out of range" in told
