"""What an engine offers: a model by word ids. The NumPy engine and the native one both do.

Log-probabilities are natural logarithms of the final distribution, with the cache where the model
has one. Ids are those of the packed file's vocabulary. An engine can be used by several threads at
once, a session by one at a time. Whatever cannot be answered raises `InferenceError`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.integer[Any]]
Floats = NDArray[np.float32]


class Session(Protocol):
    """One text that is read token by token. Questions before the first token are errors."""

    @property
    def tokens(self) -> int:
        """How many tokens were fed."""

    def feed(self, token: int) -> None:
        """Read the next token."""

    def feed_many(self, tokens: Ids | Sequence[int]) -> None:
        """Read several tokens; the same as feeding them one by one, but faster."""

    def log_probability(self, token: int) -> float:
        """Log-probability that this token comes next."""

    def log_distribution(self, out: Floats | None = None) -> Floats:
        """Log-probabilities of all words, (V); written into `out` where it is given."""

    def top_k(self, k: int) -> tuple[Ids, Floats]:
        """The k likeliest words, the likeliest first, ties by the smaller id; k above V gives V."""

    def complete(self, prefix: str, k: int) -> tuple[Ids, Floats]:
        """As `top_k`, among the words that begin with `prefix`; fewer than k where there are."""

    def sample(self, u: float, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> int:
        """Choose the next word by a number `u` in [0, 1).

        Every word weighs P^(1/temperature). With `top_k` above 0 only the k heaviest words remain;
        then, with `top_p` below 1, only the heaviest of those that are needed until their share of
        what remained reaches `top_p`; ties by the smaller id, and one word always remains. The
        chosen word is the first, in the order of ids, at which the sum of the remaining weights
        exceeds u times their total.
        """

    def fork(self) -> "Session":
        """Give a second session that has read the same and goes on by itself."""

    def save(self) -> bytes:
        """Give all of it as bytes, which `restore` of an engine with the same model takes."""


class Engine(Protocol):
    """A model that is ready to run."""

    @property
    def name(self) -> str:
        """Which engine it is: `native` or `numpy`."""

    @property
    def vocabulary_size(self) -> int:
        """How many words the model knows (V)."""

    @property
    def metadata(self) -> str:
        """The packed file's metadata, a JSON object."""

    def word(self, token: int) -> str:
        """The word of an id."""

    def find(self, word: str) -> int | None:
        """The id of a word; nothing where the vocabulary lacks it."""

    def start(self) -> Session:
        """Begin a text."""

    def restore(self, saved: bytes) -> Session:
        """Go on with a session that was saved; bytes of another model or version are refused."""

    def score(self, tokens: Ids | Sequence[int], threads: int = 1) -> Floats:
        """Log-probability of every token of a text after the first, in chunks: (T − 1).

        The text begins here: the first token is read and not predicted. It takes at least two.
        """

    def score_batch(self, texts: Sequence[Ids | Sequence[int]], threads: int = 1) -> list[Floats]:
        """`score` of several texts, each on its own; `threads` changes only the speed."""
