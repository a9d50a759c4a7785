"""The interface of an engine: a model by word ids, implemented by NumPy and the native engine.

Log-probabilities are natural logarithms of the final distribution, with the cache where the model
has one. Ids are those of the packed file's vocabulary. An engine can be used by several threads at
once, a session by one at a time. A question that cannot be answered raises `InferenceError`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from micronet_lm.runtime.recollections import Recollections

Ids = NDArray[np.integer[Any]]
Floats = NDArray[np.float32]


class Influence(NamedTuple):
    """The parts of one prediction: P = (1 − share) exp(without_cache) + share · cache."""

    without_cache: float
    """Natural log-probability of the token without the cache; −∞ for one that was added."""
    share: float
    """λ at this place: less than the model's where the cache is not full yet; 0 without one."""
    cache: float
    """P_cache of the token: the votes of all earlier places where it stood."""
    voters: tuple[tuple[int, float], ...]
    """The largest votes: number of the token that was voted for, and its part of all votes."""


class Session(Protocol):
    """One text, read token by token. Questions before the first token are errors."""

    @property
    def tokens(self) -> int:
        """Number of tokens fed."""

    def feed(self, token: int) -> None:
        """Read the next token."""

    def feed_many(self, tokens: Ids | Sequence[int]) -> None:
        """Read several tokens: equal to feeding them one by one, but faster."""

    @property
    def added(self) -> int:
        """Number of words that were added to this session; their ids are V on."""

    def add(self, word: str) -> int:
        """Return the id of a word; one that the vocabulary lacks gets an id of this session, V on.

        Such a word is read as `<unk>`. Once it was read, the cache votes for it as for any other:
        that is its probability in all questions. `log_distribution` does not have it.
        """

    def word(self, token: int) -> str:
        """Return the word of an id, of the vocabulary or of this session."""

    def find(self, word: str) -> int | None:
        """Return the id of a word of the vocabulary or of this session, None for others."""

    def forget(self, word: str) -> None:
        """Take a word out of the cache: votes for it become votes for `<unk>`.

        An added word is neither found nor predicted until it is added and read again. What the
        session recalls is not changed.
        """

    def remembered(self, count: int) -> tuple[Floats, Ids]:
        """Return the last states of the cache, (n, D), and the words that followed them, (n).

        The oldest is first; n is at most `count`.
        """

    def recall(self, recollected: Any) -> None:
        """Mix what `Engine.recollect` gave into all predictions; None ends it.

        Its words are added to the session's. Forks recall the same. Saved sessions recall nothing,
        and have only those added words that the cache refers to.
        """

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

    def influence(self, token: int, k: int) -> Influence:
        """Return what the cache does to a token's probability, and its k largest votes.

        The votes may be for any token; of equal ones the earlier place comes first.
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

    def spelling(self, word: str) -> float | None:
        """Return log P_spelling of a word outside the vocabulary; None without a spelling model.

        The word's probability is that of `<unk>` times P_spelling.
        """

    @property
    def checksum(self) -> int:
        """Checksum of the packed file, which tells models apart."""

    def recollect(self, recollections: Recollections) -> Any:
        """Prepare what sessions of this engine shall recall, for `Session.recall`."""

    def start(self) -> Session:
        """Start a session."""

    def restore(self, saved: bytes) -> Session:
        """Return the session saved in these bytes; refuse those of another model or version."""

    def score(self, tokens: Ids | Sequence[int], threads: int = 1) -> Floats:
        """Return the log-probability of every token of a text after the first: (T − 1).

        The first token begins the text: it is read but not predicted. At least two are needed.
        """

    def score_open(
        self, tokens: Ids | Sequence[int], spelled: Sequence[float], threads: int = 1
    ) -> Floats:
        """Return the same for a text with words that the vocabulary lacks.

        The id of such a word is V on; `spelled` has log P_spelling of each (−∞ without a spelling
        model). Its probability is P(`<unk>`) · P_spelling, plus the cache's votes for it.
        """

    def score_batch(self, texts: Sequence[Ids | Sequence[int]], threads: int = 1) -> list[Floats]:
        """Score several texts independently; `threads` changes only the speed."""
