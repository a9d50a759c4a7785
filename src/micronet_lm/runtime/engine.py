"""The interface of an engine: a model by word ids, implemented by NumPy and the native engine.

Log-probabilities are natural logarithms of the final distribution, with the cache where the model
has one. Ids are those of the packed file's vocabulary. An engine can be used by several threads at
once, a session by one at a time. A question that cannot be answered raises `InferenceError`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.integer[Any]]
Floats = NDArray[np.float32]


class Session(Protocol):
    """One text, read token by token. Questions before the first token are errors."""

    @property
    def tokens(self) -> int:
        """Number of tokens fed."""

    def feed(self, token: int) -> None:
        """Read the next token."""

    def feed_many(self, tokens: Ids | Sequence[int]) -> None:
        """Read several tokens: equal to feeding them one by one, but faster."""

    def log_probability(self, token: int) -> float:
        """Return the log-probability that this token comes next."""

    def log_distribution(self, out: Floats | None = None) -> Floats:
        """Return the log-probabilities of all words, (V), in `out` if given."""

    def top_k(self, k: int) -> tuple[Ids, Floats]:
        """Return the k likeliest words, likeliest first, ties by smaller id; k above V gives V."""

    def complete(self, prefix: str, k: int) -> tuple[Ids, Floats]:
        """Return the k likeliest words that begin with `prefix`, or all if there are fewer."""

    def sample(self, u: float, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> int:
        """Choose the next word by a number `u` in [0, 1).

        Every word has the weight P^(1/temperature). With `top_k` above 0 only the k words of
        largest weight remain; then, with `top_p` below 1, only the fewest of largest weight
        whose share of the remaining total reaches `top_p`. Ties go to the smaller id, and one
        word always remains. The chosen word is the first, in the order of ids, at which the sum
        of the remaining weights exceeds u times their total.
        """

    def fork(self) -> "Session":
        """Return an independent copy of this session."""

    def save(self) -> bytes:
        """Return the session as bytes, for `restore` of an engine with the same model."""


class Engine(Protocol):
    """A model that is ready to run."""

    @property
    def name(self) -> str:
        """Name of the engine: `native` or `numpy`."""

    @property
    def vocabulary_size(self) -> int:
        """Number of words the model knows (V)."""

    @property
    def metadata(self) -> str:
        """Metadata of the packed file, a JSON object."""

    def word(self, token: int) -> str:
        """Return the word of an id."""

    def find(self, word: str) -> int | None:
        """Return the id of a word, or None if it is not in the vocabulary."""

    def start(self) -> Session:
        """Begin a text."""

    def restore(self, saved: bytes) -> Session:
        """Return the session saved in these bytes; refuse those of another model or version."""

    def score(self, tokens: Ids | Sequence[int], threads: int = 1) -> Floats:
        """Return the log-probability of every token of a text after the first: (T − 1).

        The first token begins the text: it is read but not predicted. At least two are needed.
        """

    def score_batch(self, texts: Sequence[Ids | Sequence[int]], threads: int = 1) -> list[Floats]:
        """Score several texts independently; `threads` changes only the speed."""
