"""How fast an engine runs a packed model here."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.runtime.engine import Engine

TEXT = 4096
"""Tokens of the text that is scored, and the fewest tokens read before streaming is measured."""
MOST = 1 << 16
"""Tokens that are read at most before streaming is measured; a larger cache is not full then."""


def measure_engine(engine: Engine, seconds: float, threads: int = 1) -> dict[str, Any]:
    """Measure streaming and scoring for so long each; return speeds and how they were measured."""
    needed, read = tokens_to_read(json.loads(engine.metadata))
    warm = common_text(engine.vocabulary_size, read)
    session = engine.start()
    session.feed_many(warm)
    ids = warm[:TEXT]

    def distribution(token: int) -> None:
        session.feed(token)
        session.log_distribution()

    def best(token: int) -> None:
        session.feed(token)
        session.top_k(5)

    found = {
        "distribution": _streaming(distribution, ids, seconds),
        "top_5": _streaming(best, ids, seconds),
        "scoring": _scoring(engine, ids, seconds, threads),
    }
    return {
        "tokens_before": read,
        "cache_full": read >= needed,
        "tokens_per_second": found,
        "microseconds_per_token": {name: 1e6 / speed for name, speed in found.items()},
    }


def tokens_to_read(metadata: Mapping[str, Any]) -> tuple[int, int]:
    """Return the tokens that fill context and cache, and how many are read before streaming."""
    cache = metadata["cache"]
    needed = metadata["model"]["context"] + (cache["size"] if cache else 0)
    return needed, min(max(TEXT, needed), MOST)


def common_text(vocabulary: int, tokens: int, seed: int = 0) -> NDArray[np.int64]:
    """Return random ids, those of common words more often (Zipf's law)."""
    u = np.random.default_rng(seed).random(tokens)
    ids = np.exp(u * np.log(vocabulary + 1.0)) - 1
    return np.asarray(np.minimum(ids, vocabulary - 1), np.int64)


def _streaming(step: Callable[[int], None], ids: NDArray[np.int64], seconds: float) -> float:
    """Return the tokens per second of a streaming step, repeated for this time."""
    step(int(ids[0]))
    done, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds or not done:
        step(int(ids[done % len(ids)]))
        done += 1
    return done / max(spent, 1e-9)


def _scoring(engine: Engine, ids: NDArray[np.int64], seconds: float, threads: int) -> float:
    """Return the tokens per second of scoring texts in chunks."""
    engine.score(ids[:64], threads)
    done, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds or not done:
        engine.score(ids, threads)
        done += len(ids) - 1
    return done / max(spent, 1e-9)
