"""The native engine with the interface of `runtime.engine`.

The binding raises this package's errors itself. Only errors that Python and NumPy raise before the
engine is called, for arguments of a wrong type, are converted here.
"""

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from micronet_lm.artifact.container import check_there
from micronet_lm.errors import ArtifactError, InferenceError
from micronet_lm.runtime.engine import Floats, Ids, Influence
from micronet_lm.runtime.engines import has_native
from micronet_lm.runtime.questions import check_room, check_text
from micronet_lm.runtime.recollections import Recollections

P = ParamSpec("P")
R = TypeVar("R")
_UNFIT = (TypeError, ValueError, OverflowError, RuntimeError, IndexError, OSError)
"""Errors raised for arguments that cannot be converted; an array-like may raise any of them."""


def _asked(call: Callable[P, R], *words: P.args, **named: P.kwargs) -> R:
    """Call the binding with unchecked arguments."""
    try:
        return call(*words, **named)
    except _UNFIT as error:
        raise InferenceError(_sentence(error, words)) from None


def _fitting(k: int) -> int:
    """Return a number of words that the binding takes; no session has more words."""
    return min(int(k), 1 << 30)


def _sentence(error: Exception, words: tuple[object, ...]) -> str:
    """Return an error's words; those of the binding, about its own types, are replaced."""
    told = str(error)
    if "incompatible function arguments" not in told:
        return told
    given = ", ".join(
        f"{type(word).__name__} {' '.join(repr(word).split())[:40]}" for word in words
    )
    return f"these arguments have a wrong type or are out of range: {given}"


@dataclass(frozen=True, kw_only=True)
class KernelSet:
    """The engine's inner loops for one set of instructions."""

    name: str
    """Its name, such as `scalar`."""
    built: bool
    """Whether this build has the set."""
    runs: bool
    """Whether it is built, and this processor and operating system can run it."""
    chosen: bool
    """Whether `auto` takes it; the environment variable MICRONET_KERNELS may name one."""


def kernel_sets() -> tuple[KernelSet, ...]:
    """Return all kernel sets, the slowest first; none where the native engine is not built."""
    if not has_native():
        return ()
    native = importlib.import_module("micronet_lm.runtime._native")
    return tuple(
        KernelSet(name=name, built=built, runs=runs, chosen=chosen)
        for name, built, runs, chosen in native.kernel_sets()
    )


class NativeSession:
    """See `runtime.engine.Session`."""

    def __init__(self, session: Any, width: int) -> None:
        self._session, self._width = session, width

    @property
    def tokens(self) -> int:
        """Number of tokens fed."""
        return int(self._session.tokens)

    def feed(self, token: int) -> None:
        """Read the next token."""
        _asked(self._session.feed, token)

    def feed_many(self, tokens: Ids | Sequence[int]) -> None:
        """Read several tokens."""
        _asked(self._session.feed_many, tokens)

    @property
    def added(self) -> int:
        """Number of words that were added to this session."""
        return int(self._session.added)

    def add(self, word: str) -> int:
        """Return the id of a word; one that the vocabulary lacks gets an id of this session."""
        return int(_asked(self._session.add, word))

    def word(self, token: int) -> str:
        """Return the word of an id, of the vocabulary or of this session."""
        return str(_asked(self._session.word, token))

    def find(self, word: str) -> int | None:
        """Return the id of a word of the vocabulary or of this session, None for others."""
        found: int | None = _asked(self._session.find, word)
        return found

    def forget(self, word: str) -> None:
        """Take a word out of the cache."""
        _asked(self._session.forget, word)

    def remembered(self, count: int) -> tuple[Floats, Ids]:
        """Return the last states of the cache and the words that followed them."""
        states, words = _asked(self._session.remembered, max(0, count), self._width)
        return states.reshape(len(words), self._width), words

    def recall(self, recollected: Any) -> None:
        """Mix recollections into all predictions; None ends it."""
        _asked(self._session.recall, recollected)

    def log_probability(self, token: int) -> float:
        """Return the log-probability that this token comes next."""
        return float(_asked(self._session.log_probability, token))

    def log_distribution(self, out: Floats | None = None) -> Floats:
        """Return the log-probabilities of all words."""
        if out is not None:
            check_room(out)
        answer: Floats = _asked(self._session.log_distribution, out)
        return answer

    def top_k(self, k: int) -> tuple[Ids, Floats]:
        """Return the k likeliest words."""
        best: tuple[Ids, Floats] = _asked(self._session.top_k, k)
        return best

    def complete(self, prefix: str, k: int) -> tuple[Ids, Floats]:
        """Return the k likeliest words that begin with a prefix."""
        best: tuple[Ids, Floats] = _asked(self._session.complete, prefix, k)
        return best

    def next_words(self, before: str, k: int) -> list[tuple[str, float]]:
        """Return the k likeliest words for a screen after a token, with their probabilities."""
        found: list[tuple[str, float]] = _asked(self._session.next_words, before, _fitting(k))
        return found

    def completions(self, before: str, prefix: str, k: int) -> list[tuple[str, float]]:
        """Return those of them that begin with a prefix, in small letters or capitals."""
        found: list[tuple[str, float]] = _asked(
            self._session.completions, before, prefix, _fitting(k)
        )
        return found

    def suggest(self, before: str, typed: str, spaced: bool, k: int) -> list[tuple[str, float]]:
        """Return words for someone who types: endings of what was typed, or next words."""
        found: list[tuple[str, float]] = _asked(
            self._session.suggest, before, typed, spaced, _fitting(k)
        )
        return found

    def sample(self, u: float, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> int:
        """Choose the next word by a number in [0, 1)."""
        return int(_asked(self._session.sample, u, temperature, top_k, top_p))

    def influence(self, token: int, k: int) -> Influence:
        """Return what the cache does to a token's probability, and its k largest votes."""
        return Influence(*_asked(self._session.influence, token, k))

    def fork(self) -> "NativeSession":
        """Return an independent copy of this session."""
        return NativeSession(self._session.fork(), self._width)

    def save(self) -> bytes:
        """Return the session as bytes."""
        return bytes(self._session.save())


class NativeEngine:
    """See `runtime.engine.Engine`.

    `kernels` names a kernel set. `auto` takes the one that the environment variable
    MICRONET_KERNELS names or, if it is not set, the fastest that this processor runs.
    """

    def __init__(self, path: Path | str, *, kernels: str = "auto") -> None:
        native = importlib.import_module("micronet_lm.runtime._native")
        check_there(Path(path))
        try:
            self._engine: Any = native.Engine(str(path), kernels=kernels)
        except _UNFIT as error:
            why = _sentence(error, (str(path), kernels))
            raise ArtifactError(f"{path} cannot be used: {why}") from None
        shape = json.loads(self._engine.metadata)
        self._width = int(shape["model"]["width"])
        self._cache = int((shape["cache"] or {"size": 0})["size"])

    @property
    def name(self) -> str:
        """Name of the engine."""
        return "native"

    @property
    def vocabulary_size(self) -> int:
        """Number of words the model knows."""
        return int(self._engine.vocabulary_size)

    @property
    def metadata(self) -> str:
        """Metadata of the packed file, a JSON object."""
        return str(self._engine.metadata)

    @property
    def kernels(self) -> str:
        """Name of the kernel set in use, one of `kernel_sets`."""
        return str(self._engine.kernels)

    def word(self, token: int) -> str:
        """Return the word of an id."""
        return str(_asked(self._engine.word, token))

    def find(self, word: str) -> int | None:
        """Return the id of a word, or None if it is not in the vocabulary."""
        found: int | None = _asked(self._engine.find, word)
        return found

    def spelling(self, word: str) -> float | None:
        """Return log P_spelling of a word outside the vocabulary; None without a spelling model."""
        found: float | None = _asked(self._engine.spelling, word)
        return found

    def suggest(self, text: str, k: int) -> tuple[list[tuple[str, float]], str, int]:
        """Return words for a text that is asked about once, what they replace, and its tokens."""
        found: tuple[list[tuple[str, float]], str, int] = _asked(
            self._engine.suggest, text, _fitting(k)
        )
        return found

    @property
    def checksum(self) -> int:
        """Checksum of the packed file."""
        return int(self._engine.checksum)

    def recollect(self, recollections: Recollections) -> Any:
        """Prepare what sessions shall recall."""
        own = recollections
        own.check(cache=self._cache, vocabulary=self.vocabulary_size, width=self._width)
        return _asked(
            self._engine.recollect,
            np.ascontiguousarray(own.states).view(np.uint16),
            own.following,
            list(own.words),
            list(own.counts),
            own.state_share,
            own.word_share,
        )

    def start(self) -> NativeSession:
        """Start a session."""
        return NativeSession(self._engine.start(), self._width)

    def restore(self, saved: bytes) -> NativeSession:
        """Return the session saved in these bytes."""
        return NativeSession(_asked(self._engine.restore, saved), self._width)

    def score(self, tokens: Ids | Sequence[int], threads: int = 1) -> Floats:
        """Return the log-probability of every token of a text after the first."""
        ids = check_text(tokens, self.vocabulary_size, least=2)
        scores: Floats = _asked(self._engine.score, ids, threads)
        return scores

    def score_open(
        self, tokens: Ids | Sequence[int], spelled: Sequence[float], threads: int = 1
    ) -> Floats:
        """Return the same for a text with words that the vocabulary lacks."""
        ids = check_text(tokens, self.vocabulary_size + len(spelled), least=2)
        logs = np.asarray(spelled, np.float64)
        scores: Floats = _asked(self._engine.score_open, ids, logs, threads)
        return scores

    def score_batch(self, texts: Sequence[Ids | Sequence[int]], threads: int = 1) -> list[Floats]:
        """Score several texts independently."""
        every = [check_text(text, self.vocabulary_size, least=2) for text in texts]
        scores: list[Floats] = _asked(self._engine.score_batch, every, threads)
        return scores
