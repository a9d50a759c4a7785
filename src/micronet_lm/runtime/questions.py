"""Checks of an engine's arguments, and the choice of words that all engines share."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Floats, Ids

MOST_ADDED = 1 << 20
"""Words that a session can add to the vocabulary."""


def checked_text(text: object, what: str = "a text") -> str:
    """Return a text; refuse other types, and halves of surrogate pairs, which no text has."""
    if not isinstance(text, str):
        raise InferenceError(f"{what} must be a str, got {type(text).__name__}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InferenceError(
                f"{what} has half of a surrogate pair at character {error.start}, which is not "
                "Unicode text: decode it with errors='replace'"
            ) from None
    return text


def check_whole(name: str, number: object, least: int) -> None:
    """Refuse what is not a whole number, or a smaller one."""
    if not isinstance(number, int | np.integer):
        raise InferenceError(f"{name} must be a whole number, got {type(number).__name__}")
    if number < least:
        raise InferenceError(f"{name} must be {least} or more, got {number}")


def check_token(token: int, size: int) -> int:
    """Refuse an id outside the vocabulary."""
    if not 0 <= token < size:
        raise InferenceError(
            f"token {token} is out of range for a vocabulary of {size:,}: choose ids from 0 to "
            f"{size - 1}"
        )
    return int(token)


def check_text(tokens: Ids | Sequence[int], size: int, *, least: int) -> NDArray[np.int64]:
    """Return ids as an array; refuse other types, short texts and ids outside the vocabulary."""
    ids: NDArray[Any] = np.asarray(tokens)
    if ids.size == 0:
        ids = ids.astype(np.int64)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise InferenceError(f"ids must be a 1-D array of integers, got {ids.ndim}-D {ids.dtype}")
    if len(ids) < least:
        raise InferenceError(
            f"a text of {len(ids)} tokens has nothing to predict: it needs {least} or more"
        )
    if len(ids):
        check_token(int(ids.min()), size)
        check_token(int(ids.max()), size)
    return ids.astype(np.int64, copy=False)


def check_room(out: Any) -> None:
    """Refuse an array that cannot be filled in place: a filled copy would be lost."""
    if not isinstance(out, np.ndarray):
        raise InferenceError(f"out must be a NumPy array of float32, got {type(out).__name__}")
    if out.dtype != np.float32 or out.ndim != 1:
        raise InferenceError(f"out must be a 1-D array of float32, got {out.ndim}-D {out.dtype}")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise InferenceError("out must be contiguous and writeable: give an array of its own")


def check_threads(threads: int) -> None:
    """Refuse fewer than one thread."""
    check_whole("threads", threads, 1)


def check_added(word: str, *, unknown: int | None, held: int) -> None:
    """Refuse to add what is no word, or to a model or session that cannot take it."""
    if not word or "\n" in word:
        raise InferenceError("a word to add must not be empty or contain a line feed")
    if unknown is None:
        raise InferenceError("the vocabulary lacks <unk>, as which added words are read")
    if held >= MOST_ADDED:
        raise InferenceError(f"a session can add at most {MOST_ADDED} words")


def check_spelled(word: str, *, known: bool) -> None:
    """Refuse to spell what is no word, or one that the vocabulary has."""
    if not word or "\n" in word:
        raise InferenceError("a word to spell must not be empty or contain a line feed")
    if known:
        raise InferenceError(f"the vocabulary has the word {word!r}: only other words are spelled")


def largest_k(numbers: Floats, k: int) -> NDArray[np.intp]:
    """Return the indices of the k largest numbers, largest first, ties by index."""
    if k < 1:
        raise InferenceError(f"k must be 1 or more, got {k}")
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
        raise InferenceError(f"u must be in [0, 1), got {u}")
    behind = log_probabilities.astype(np.float64) - log_probabilities.max()
    with np.errstate(over="ignore"):  # a tiny temperature gives unlikely words the weight 0
        weights = np.exp(behind / temperature)
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
    """Refuse settings outside their bounds."""
    for name, number in {"temperature": temperature, "top_p": top_p}.items():
        if not isinstance(number, int | float | np.number):
            raise InferenceError(f"{name} must be a number, got {type(number).__name__}")
    if not isinstance(top_k, int | np.integer):
        raise InferenceError(f"top_k must be a whole number, got {type(top_k).__name__}")
    if not (temperature > 0 and math.isfinite(temperature)):
        raise InferenceError(f"temperature must be above 0 and finite, got {temperature}")
    if top_k < 0:
        raise InferenceError(f"top_k must be 0 (all words) or more, got {top_k}")
    if not 0 < top_p <= 1:
        raise InferenceError(f"top_p must be above 0 and at most 1, got {top_p}")
