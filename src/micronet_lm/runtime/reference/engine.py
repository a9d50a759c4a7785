"""The NumPy engine: texts in chunks, sessions token by token, words by id."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact import PackedFile, open_packed
from micronet_lm.config import Place
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Floats, Ids
from micronet_lm.runtime.questions import check_text, check_threads, check_token
from micronet_lm.runtime.reference.arithmetic import Numbers, Quantizer
from micronet_lm.runtime.reference.network import Network, Past
from micronet_lm.runtime.reference.recall import (
    Memory,
    mixed_log_distribution,
    mixed_log_probability,
)
from micronet_lm.runtime.reference.session import NumpySession
from micronet_lm.runtime.reference.softmax import AdaptiveSoftmax

CHUNK = 1024
"""Number of tokens computed at once."""


class NumpyEngine:
    """A packed model computed by NumPy; see `runtime.engine.Engine`."""

    def __init__(self, path: Path | str, *, chunk: int = CHUNK) -> None:
        file: PackedFile = open_packed(Path(path))
        model = file.model
        self.shape, self.cache = model.shape, model.cache
        self._words, self._metadata, self._chunk = model.words, file.container.metadata, chunk
        self._index = {word: number for number, word in enumerate(model.words)}
        self.fingerprint = hashlib.sha256(file.container.everything()).digest()
        quantizers: dict[Place, list[Quantizer]] = {
            place: [Quantizer(scale=scale, bits=model.activation_bits or 0) for scale in rows[:, 1]]
            for place, rows in model.activations.items()
        }
        hidden = quantizers.get(Place.HIDDEN)
        self.hidden_scale = float(hidden[0].scale) if hidden else 1.0
        exact = bool(quantizers)
        self._network = Network(model, quantizers, exact)
        self._softmax = AdaptiveSoftmax(model, quantizers, exact)

    @property
    def name(self) -> str:
        """Name of the engine."""
        return "numpy"

    @property
    def vocabulary_size(self) -> int:
        """Number of words the model knows."""
        return len(self._words)

    @property
    def metadata(self) -> str:
        """Metadata of the packed file, a JSON object."""
        return self._metadata

    def word(self, token: int) -> str:
        """Return the word of an id."""
        return self._words[check_token(token, self.vocabulary_size)]

    def find(self, word: str) -> int | None:
        """Return the id of a word, or None if it is not in the vocabulary."""
        return self._index.get(word)

    def beginning_with(self, prefix: str) -> NDArray[np.int64]:
        """Return the ids of all words that begin with a prefix, increasing."""
        words, ids = self._sorted
        low = bisect_left(words, prefix)
        high = bisect_right(words, prefix, lo=low, key=lambda word: word[: len(prefix)])
        return np.sort(ids[low:high])

    @cached_property
    def _sorted(self) -> tuple[list[str], NDArray[np.int64]]:
        ranked = sorted(range(len(self._words)), key=self._words.__getitem__)
        return [self._words[number] for number in ranked], np.array(ranked, np.int64)

    def start(self) -> NumpySession:
        """Begin a text."""
        return NumpySession(self)

    def restore(self, saved: bytes) -> NumpySession:
        """Return the session saved in these bytes."""
        return NumpySession.restored(self, saved)

    def score(self, tokens: Ids | Sequence[int], threads: int = 1) -> Floats:
        """Return the log-probability of every token of a text after the first."""
        check_threads(threads)
        ids = check_text(tokens, self.vocabulary_size, least=2)
        past, memory, parts = Past.empty(self.shape), Memory.empty(self.shape.width), []
        for low in range(0, len(ids) - 1, self._chunk):
            high = min(low + self._chunk, len(ids) - 1)
            hidden, past = self.advance(ids[low:high], past)
            following = ids[low + 1 : high + 1]
            part = self._softmax.log_probability(hidden, following)
            if self.cache is not None:
                states = hidden.floats()
                part = mixed_log_probability(self.cache, memory, states, following, part)
                memory = memory.after(states, following, self.cache.size)
            parts.append(part)
        return _finite(np.concatenate(parts))

    def score_batch(self, texts: Sequence[Ids | Sequence[int]], threads: int = 1) -> list[Floats]:
        """Score several texts independently."""
        check_threads(threads)
        for text in texts:
            check_text(text, self.vocabulary_size, least=2)
        if threads == 1:
            return [self.score(text) for text in texts]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(self.score, texts))

    def advance(self, ids: NDArray[np.int64], past: Past) -> tuple[Numbers, Past]:
        """Return the hidden states of tokens that follow a past, and the past after them."""
        with np.errstate(over="ignore", invalid="ignore"):
            hidden, past = self._network(ids, past)
        _finite(hidden.numbers)
        return hidden, past

    def log_distribution(self, hidden: Numbers, memory: Memory) -> Floats:
        """Return the log-probabilities of all words after one hidden state (1, D)."""
        with np.errstate(over="ignore", invalid="ignore"):
            own = self._softmax.log_distribution(hidden)[0]
        if self.cache is not None:
            own = mixed_log_distribution(self.cache, memory, hidden.floats()[0], own)
        return _finite(own)


def _finite(numbers: NDArray[Any]) -> NDArray[Any]:
    if np.isnan(numbers).any():
        raise InferenceError("the model computes non-finite numbers: pack it again")
    return numbers
