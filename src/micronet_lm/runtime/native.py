"""The native engine with the interface of `runtime.engine`.

The binding raises this package's errors itself. Only errors that Python and NumPy raise before the
engine is called, for arguments of a wrong type, are converted here.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from micronet_lm.artifact.container import check_there
from micronet_lm.errors import ArtifactError, InferenceError
from micronet_lm.runtime.engine import Floats, Ids
from micronet_lm.runtime.engines import has_native
from micronet_lm.runtime.questions import check_text

P = ParamSpec("P")
R = TypeVar("R")
_UNFIT = (TypeError, ValueError, OverflowError, RuntimeError, IndexError, OSError)
"""Errors raised for arguments that cannot be converted; an array-like may raise any of them."""


def _asked(call: Callable[P, R], *words: P.args, **named: P.kwargs) -> R:
    """Call the binding with unchecked arguments."""
    try:
        return call(*words, **named)
    except _UNFIT as error:
        raise InferenceError(str(error)) from None


@dataclass(frozen=True, kw_only=True)
class KernelSet:
    """The engine's inner loops for one set of instructions."""

    name: str
    """`scalar`, `avx2` or `avx512`."""
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

    def __init__(self, session: Any) -> None:
        self._session = session

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

    def log_probability(self, token: int) -> float:
        """Return the log-probability that this token comes next."""
        return float(_asked(self._session.log_probability, token))

    def log_distribution(self, out: Floats | None = None) -> Floats:
        """Return the log-probabilities of all words."""
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

    def sample(self, u: float, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> int:
        """Choose the next word by a number in [0, 1)."""
        return int(_asked(self._session.sample, u, temperature, top_k, top_p))

    def fork(self) -> "NativeSession":
        """Return an independent copy of this session."""
        return NativeSession(self._session.fork())

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
            raise ArtifactError(f"{path} cannot be used: {error}") from None

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

    def start(self) -> NativeSession:
        """Begin a text."""
        return NativeSession(self._engine.start())

    def restore(self, saved: bytes) -> NativeSession:
        """Return the session saved in these bytes."""
        return NativeSession(_asked(self._engine.restore, saved))

    def score(self, tokens: Ids | Sequence[int], threads: int = 1) -> Floats:
        """Return the log-probability of every token of a text after the first."""
        ids = check_text(tokens, self.vocabulary_size, least=2)
        scores: Floats = _asked(self._engine.score, ids, threads)
        return scores

    def score_batch(self, texts: Sequence[Ids | Sequence[int]], threads: int = 1) -> list[Floats]:
        """Score several texts independently."""
        every = [check_text(text, self.vocabulary_size, least=2) for text in texts]
        scores: list[Floats] = _asked(self._engine.score_batch, every, threads)
        return scores
