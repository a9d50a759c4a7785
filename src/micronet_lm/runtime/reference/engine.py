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
from micronet_lm.checksum import checksum
from micronet_lm.config import Place
from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.errors import InferenceError
from micronet_lm.ngrams.lookup import Lookup, mix_table
from micronet_lm.runtime.engine import Floats, Ids
from micronet_lm.runtime.questions import check_spelled, check_text, check_threads, check_token
from micronet_lm.runtime.recollections import Recollections
from micronet_lm.runtime.reference.arithmetic import Numbers, Quantizer
from micronet_lm.runtime.reference.network import Network, Past
from micronet_lm.runtime.reference.recall import (
    Memory,
    Recollected,
    Unknown,
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
        self._spelling = model.spelling
        self._file = file.container.everything()
        self.checksum = _checksum(file)
        quantizers: dict[Place, list[Quantizer]] = {
            place: [Quantizer(scale=scale, bits=model.activation_bits or 0) for scale in rows[:, 1]]
            for place, rows in model.activations.items()
        }
        hidden = quantizers.get(Place.HIDDEN)
        self.hidden_scale = float(hidden[0].scale) if hidden else 1.0
        self._quantize_hidden = hidden[0] if hidden else None
        self._table = Lookup(model.ngrams) if model.ngrams else None
        exact = bool(quantizers)
        self._network = Network(model, quantizers, exact)
        self._softmax = AdaptiveSoftmax(model, quantizers, exact)

    @cached_property
    def fingerprint(self) -> bytes:
        """The SHA-256 of the file, which saved sessions carry; computed when one is first saved."""
        return hashlib.sha256(self._file).digest()

    @property
    def name(self) -> str:
        """Name of the engine."""
        return "numpy"

    @property
    def vocabulary_size(self) -> int:
        """Number of words the model knows."""
        return len(self._words)

    @property
    def kept_words(self) -> int:
        """Number of last words that a session keeps for the table of n-grams."""
        return self._table.order - 1 if self._table else 0

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

    def spelling(self, word: str) -> float | None:
        """Return log P_spelling of a word outside the vocabulary; None without a spelling model."""
        if self._spelling is None:
            return None
        check_spelled(word, known=word != UNK and word in self._index)
        return self._spelling.log_probability(word)

    def recollect(self, recollections: Recollections) -> Recollected:
        """Prepare what sessions shall recall."""
        held = 0 if self.cache is None else self.cache.size
        recollections.check(cache=held, vocabulary=self.vocabulary_size, width=self.shape.width)
        states = recollections.states.astype(np.float32)
        if self._quantize_hidden is not None:  # half precision has rounded them
            states = self._quantize_hidden(states).floats()
        return Recollected(recollections=recollections, states=states)

    def start(self) -> NumpySession:
        """Start a session."""
        return NumpySession(self)

    def restore(self, saved: bytes) -> NumpySession:
        """Return the session saved in these bytes."""
        return NumpySession.restored(self, saved)

    def score(self, tokens: Ids | Sequence[int], threads: int = 1) -> Floats:
        """Return the log-probability of every token of a text after the first."""
        return self.score_open(tokens, (), threads)

    def score_open(
        self, tokens: Ids | Sequence[int], spelled: Sequence[float], threads: int = 1
    ) -> Floats:
        """Return the same for a text with words that the vocabulary lacks."""
        check_threads(threads)
        ids = check_text(tokens, self.vocabulary_size + len(spelled), least=2)
        read, logs = self.read_as(ids), np.asarray(spelled, np.float64)
        past, memory = Past.empty(self.shape), Memory.empty(self.shape.width)
        parts = []
        for low in range(0, len(ids) - 1, self._chunk):
            high = min(low + self._chunk, len(ids) - 1)
            hidden, past = self.advance(read[low:high], past)
            following, states = ids[low + 1 : high + 1], hidden.floats()
            part = self._softmax.log_probability(hidden, read[low + 1 : high + 1])
            if self._table is not None:
                part = self._with_table(part, read, low, high)
            unknown = None
            if len(logs) and (new := following >= self.vocabulary_size).any():
                own = logs[following[new] - self.vocabulary_size]
                part = part.astype(np.float64)
                part[new] += own
                chances = np.zeros(len(part))
                chances[new] = np.exp(own)
                unknown = Unknown(token=self._index[UNK], spelled=chances)
            if self.cache is not None:
                part = mixed_log_probability(self.cache, memory, states, following, part, unknown)
                memory = memory.after(states, following, self.cache.size)
            parts.append(part)
        return _finite(np.concatenate(parts).astype(np.float32, copy=False))

    def score_batch(self, texts: Sequence[Ids | Sequence[int]], threads: int = 1) -> list[Floats]:
        """Score several texts independently."""
        check_threads(threads)
        for text in texts:
            check_text(text, self.vocabulary_size, least=2)
        if threads == 1:
            return [self.score(text) for text in texts]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(self.score, texts))

    def read_as(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what the network reads: `<unk>` for words that the vocabulary lacks."""
        if not len(ids) or int(ids.max()) < self.vocabulary_size:
            return ids
        return np.where(ids < self.vocabulary_size, ids, self._index[UNK])

    def advance(self, ids: NDArray[np.int64], past: Past) -> tuple[Numbers, Past]:
        """Return the hidden states of tokens that follow a past, and the past after them."""
        with np.errstate(over="ignore", invalid="ignore"):
            hidden, past = self._network(ids, past)
        _finite(hidden.numbers)
        return hidden, past

    def log_distribution(self, hidden: Numbers, memory: Memory, read: Sequence[int]) -> Floats:
        """Return the log-probabilities of all words after one hidden state (1, D).

        `read` are the last words, `kept_words` of them where so many were read.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            own = self._softmax.log_distribution(hidden)[0]
        if self._table is not None:
            own = mix_table(own, self._table.log_distribution(read), self._table.share)
        if self.cache is not None:
            own = mixed_log_distribution(self.cache, memory, hidden.floats()[0], own)
        return _finite(own)

    def _with_table(self, part: Floats, ids: NDArray[np.int64], low: int, high: int) -> Floats:
        """Mix the table into log P_softmax of the words after tokens low … high − 1."""
        assert self._table is not None  # noqa: S101
        read = ids.tolist()
        logs = [
            self._table.log_probability(
                read[max(0, at + 1 - self.kept_words) : at + 1], read[at + 1]
            )
            for at in range(low, high)
        ]
        return mix_table(part, np.array(logs, np.float32), self._table.share)


def _checksum(file: PackedFile) -> int:
    """Return the checksum that the file ends with; files of version 0.1 have none."""
    everything = file.container.everything()
    if file.container.checked:
        return int.from_bytes(everything[-8:], "little")
    return int(checksum(everything), 16)


def _finite(numbers: NDArray[Any]) -> NDArray[Any]:
    if np.isnan(numbers).any():
        raise InferenceError("the model computes non-finite numbers: pack it again")
    return numbers
