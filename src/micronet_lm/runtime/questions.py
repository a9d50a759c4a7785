"""Checks of what an engine is asked, and the choices among words that all engines share."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Floats, Ids


def check_token(token: int, size: int) -> int:
    """Refuse an id outside the vocabulary."""
    if not 0 <= token < size:
        raise InferenceError(
            f"token {token} is out of range for a vocabulary of {size:,}: ids run from 0 to "
            f"{size - 1}"
        )
    return int(token)


def check_text(tokens: Ids | Sequence[int], size: int, *, least: int) -> NDArray[np.int64]:
    """Give ids as an array; refuse what is none, too short, or outside the vocabulary."""
    ids: NDArray[Any] = np.asarray(tokens)
    if ids.size == 0:
        ids = ids.astype(np.int64)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise InferenceError(f"ids are one row of whole numbers, not {ids.ndim}-D {ids.dtype}")
    if len(ids) < least:
        raise InferenceError(
            f"a text of {len(ids)} tokens has nothing to predict: it needs {least} or more"
        )
    if len(ids):
        check_token(int(ids.min()), size)
        check_token(int(ids.max()), size)
    return ids.astype(np.int64, copy=False)


def check_threads(threads: int) -> None:
    """Refuse fewer than one thread."""
    if threads < 1:
        raise InferenceError(f"{threads} threads cannot work: give 1 or more")


def largest_k(numbers: Floats, k: int) -> NDArray[np.intp]:
    """Places of the k largest numbers, the largest first, ties by place."""
    if k < 1:
        raise InferenceError(f"k is {k}, but at least one word must be asked for: give 1 or more")
    k = min(k, len(numbers))
    if not k:
        return np.empty(0, np.intp)
    least = np.partition(numbers, len(numbers) - k)[len(numbers) - k]
    (places,) = np.nonzero(numbers >= least)
    return places[np.argsort(-numbers[places], kind="stable")][:k]


def choose(
    log_probabilities: Floats, u: float, temperature: float, top_k: int, top_p: float
) -> int:
    """Choose a word by a number; see `Session.sample`."""
    check_sampling(temperature, top_k, top_p)
    if not 0 <= u < 1:
        raise InferenceError(f"u is {u}, but it must lie in [0, 1)")
    logits = log_probabilities.astype(np.float64) / temperature
    weights = np.exp(logits - logits.max())
    remaining = np.arange(len(weights))
    if top_k:
        remaining = largest_k(weights, top_k)
    if top_p < 1:
        ranked = remaining[np.argsort(-weights[remaining], kind="stable")]
        sums = np.cumsum(weights[ranked])
        remaining = ranked[: int(np.searchsorted(sums, top_p * sums[-1])) + 1]
    remaining = np.sort(remaining)
    sums = np.cumsum(weights[remaining])
    place = int(np.searchsorted(sums, u * sums[-1], side="right"))
    return int(remaining[min(place, len(remaining) - 1)])


def check_sampling(temperature: float, top_k: int, top_p: float) -> None:
    """Refuse settings that leave nothing to choose from."""
    if not (temperature > 0 and math.isfinite(temperature)):
        raise InferenceError(f"the temperature {temperature} must be above 0 and finite")
    if top_k < 0:
        raise InferenceError(f"top_k is {top_k}, but it must be 0 (all words) or more")
    if not 0 < top_p <= 1:
        raise InferenceError(f"top_p is {top_p}, but it must lie above 0 and be at most 1")
