"""An n-gram model behind the interface of an engine, so that it suggests words as our models do.

It answers with the probabilities of all words, however slow that is: KenLM itself only scores.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Engine, Floats, Ids
from micronet_lm.runtime.questions import choose, largest_k
from ngrams import KenLM, Text


class NgramSession:
    """A text that an n-gram model reads; see `micronet_lm.runtime.engine.Session`."""

    def __init__(self, engine: "NgramEngine", text: Text, tokens: int = 0) -> None:
        self._engine, self._text, self._tokens = engine, text, tokens
        self._answer: Floats | None = None

    @property
    def tokens(self) -> int:
        """Number of tokens fed."""
        return self._tokens

    def feed(self, token: int) -> None:
        """Read the next token."""
        self._text.feed(token)
        self._tokens, self._answer = self._tokens + 1, None

    def feed_many(self, tokens: Ids | Sequence[int]) -> None:
        """Read several tokens."""
        for token in np.asarray(tokens).tolist():
            self.feed(token)

    added = 0

    def add(self, word: str) -> int:
        """Return the id of a word, that of `<unk>` for others: it learns none."""
        found = self._engine.find(word)
        return self._engine.unknown if found is None else found

    def word(self, token: int) -> str:
        """Return the word of an id."""
        return self._engine.word(token)

    def find(self, word: str) -> int | None:
        """Return the id of a word, or None if it is not in the vocabulary."""
        return self._engine.find(word)

    def log_probability(self, token: int) -> float:
        """Return the log-probability that this token comes next."""
        return float(self.log_distribution()[token])

    def log_distribution(self, out: Floats | None = None) -> Floats:
        """Return the log-probabilities of all words."""
        if self._answer is None:
            self._answer = self._text.log_distribution()
        return self._answer

    def top_k(self, k: int) -> tuple[Ids, Floats]:
        """Return the k likeliest words."""
        return self._best(np.arange(self._engine.vocabulary_size), k)

    def complete(self, prefix: str, k: int) -> tuple[Ids, Floats]:
        """Return the k likeliest words that begin with a prefix."""
        return self._best(self._engine.beginning_with(prefix), k)

    def sample(self, u: float, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> int:
        """Choose the next word by a number in [0, 1)."""
        return choose(self.log_distribution(), u, temperature, top_k, top_p)

    def fork(self) -> "NgramSession":
        """Return an independent copy of this session."""
        return NgramSession(self._engine, self._text.fork(), self._tokens)

    def save(self) -> bytes:
        """Refuse: nothing here is worth a file."""
        raise InferenceError("an n-gram session cannot be saved")

    def _best(self, among: NDArray[np.int64], k: int) -> tuple[Ids, Floats]:
        own = self.log_distribution()[among]
        best = largest_k(own, k)
        return among[best], own[best]


class NgramEngine:
    """An n-gram model with a vocabulary; see `micronet_lm.runtime.engine.Engine`."""

    name = "ngram"

    def __init__(
        self, model: KenLM, words: Sequence[str], metadata: str, speller: Engine | None = None
    ) -> None:
        self._speller = speller
        self._model, self._words, self.metadata = model, list(words), metadata
        self._index = {word: number for number, word in enumerate(self._words)}
        self.unknown = self._index[UNK]
        self._prefixes: dict[str, NDArray[np.int64]] = {}

    @property
    def vocabulary_size(self) -> int:
        """Number of words the model knows."""
        return len(self._words)

    def word(self, token: int) -> str:
        """Return the word of an id."""
        return self._words[token]

    def find(self, word: str) -> int | None:
        """Return the id of a word, or None if it is not in the vocabulary."""
        return self._index.get(word)

    def beginning_with(self, prefix: str) -> NDArray[np.int64]:
        """Return the ids of all words that begin with a prefix, increasing."""
        if prefix not in self._prefixes:
            found = [n for n, word in enumerate(self._words) if word.startswith(prefix)]
            self._prefixes[prefix] = np.array(found, np.int64)
        return self._prefixes[prefix]

    def spelling(self, word: str) -> float | None:
        """Return what another engine says: an n-gram model of words cannot spell."""
        return self._speller.spelling(word) if self._speller else None

    def start(self) -> NgramSession:
        """Begin a text."""
        return NgramSession(self, self._model.start())

    def restore(self, saved: bytes) -> NgramSession:
        """Refuse: nothing was saved."""
        raise InferenceError("an n-gram session cannot be restored")

    def score(self, tokens: Ids | Sequence[int], threads: int = 1) -> Floats:
        """Return the log-probability of every token of a text after the first."""
        ids = np.asarray(tokens).tolist()
        session, scores = self.start(), []
        for token, following in pairwise(ids):
            session.feed(token)
            scores.append(session.log_probability(following))
        return np.array(scores, np.float32)

    def score_open(
        self, tokens: Ids | Sequence[int], spelled: Sequence[float], threads: int = 1
    ) -> Floats:
        """Score a text whose words from V on are spelled."""
        size = self.vocabulary_size
        ids = np.asarray(tokens)
        logs = np.append(spelled, 0.0)[np.where(ids[1:] < size, -1, ids[1:] - size)]
        own = np.where(ids < size, ids, self.unknown)
        return np.asarray(self.score(own) + logs, np.float32)

    def score_batch(self, texts: Sequence[Ids | Sequence[int]], threads: int = 1) -> list[Floats]:
        """Score several texts independently."""
        return [self.score(text) for text in texts]
