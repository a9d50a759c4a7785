"""Text-level API for packed models: scores, next words, generated text."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.metadata import strict_json
from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Engine, Ids, Session
from micronet_lm.runtime.engines import Name, open_engine
from micronet_lm.runtime.questions import check_sampling, choose
from micronet_lm.runtime.words import Encoder, Words


class Scored(NamedTuple):
    """A token as a word of the vocabulary, and its natural log-probability."""

    word: str
    log_probability: float


class Candidate(NamedTuple):
    """A word that may come next, and its probability."""

    word: str
    probability: float


def load(path: Path | str, engine: Name = "auto") -> "LM":
    """Open a packed file; `auto` takes the native engine where it is built, else NumPy."""
    return LM(open_engine(path, engine))


class LM:
    """A packed language model.

    Text is split into tokens like the training corpus; a newline is the token `<eos>`, and words
    outside the vocabulary become `<unk>`.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        """The engine that computes, by word ids."""
        metadata = strict_json(engine.metadata, "its metadata")
        self.card: Mapping[str, Any] = metadata["card"]
        """Description of the model and its origin."""
        self.vocabulary = Words(engine)
        """All words; a word's index is its id."""
        self.encoder = Encoder(engine, metadata["tokenizer"])
        """Converter from text to ids."""

    def __repr__(self) -> str:
        return f"LM({self.card.get('name', 'unnamed')!r}, {len(self.vocabulary)} words)"

    def perplexity(self, text: str, threads: int = 1) -> float:
        """Return exp of the mean negative log-probability of every token after the first."""
        scores = self.engine.score(self.encoder.ids(text), threads)
        return float(np.exp(min(-scores.mean(dtype=np.float64), 709.0)))

    def score(self, text: str, threads: int = 1) -> list[Scored]:
        """Return every token after the first with its log-probability after all tokens before."""
        ids = self.encoder.ids(text)
        return self._scored(ids, self.engine.score(ids, threads))

    def score_batch(self, texts: Sequence[str], threads: int = 1) -> list[list[Scored]]:
        """Score several texts independently; `threads` changes only the speed."""
        ids = [self.encoder.ids(text) for text in texts]
        scores = self.engine.score_batch(ids, threads)
        return [self._scored(own, score) for own, score in zip(ids, scores, strict=True)]

    def top_k(self, text: str, k: int = 5) -> list[Candidate]:
        """Return the k likeliest words after a text; an empty text counts as a line end."""
        return self._after(text).top_k(k)

    def complete(self, text: str, prefix: str, k: int = 5) -> list[Candidate]:
        """Return the k likeliest words after a text that begin with `prefix`."""
        return self._after(text).complete(prefix, k)

    def generate(
        self,
        text: str = "",
        max_tokens: int = 50,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        unknown: bool = False,
    ) -> Iterator[str]:
        """Continue a text word by word; the same seed gives the same words.

        A temperature of 0 always takes the likeliest word. `top_k` above 0 and `top_p` below 1
        restrict the choice to the likeliest words. `<unk>`, which stands for all words outside
        the vocabulary, is generated only if `unknown` is true. The result is words of the
        vocabulary; `join` turns them into text.
        """
        return self._after(text).write(max_tokens, temperature, top_k, top_p, seed, unknown)

    def join(self, words: Sequence[str]) -> str:
        """Join words to text."""
        return self.encoder.tokenizer.join(words)

    def start(self) -> "State":
        """Begin a text."""
        return State(self, self.engine.start())

    def restore(self, saved: bytes) -> "State":
        """Return the state saved in these bytes."""
        return State(self, self.engine.restore(saved))

    def _after(self, text: str) -> "State":
        state = self.start()
        state.feed(text)
        if not state.tokens:
            state.feed("\n")
        return state

    def _scored(self, ids: Ids, scores: NDArray[np.float32]) -> list[Scored]:
        words = map(self.engine.word, ids[1:].tolist())
        return [Scored(*pair) for pair in zip(words, scores.tolist(), strict=True)]


class State:
    """A text being read; it predicts the next word at any time."""

    def __init__(self, model: LM, session: Session) -> None:
        self._model, self._session = model, session

    @property
    def tokens(self) -> int:
        """Number of tokens read."""
        return self._session.tokens

    def feed(self, text: str) -> None:
        """Read more text: one word or many."""
        self._session.feed_many(self._model.encoder.ids(text))

    def feed_words(self, words: Sequence[str]) -> None:
        """Read words of the vocabulary, without splitting text."""
        self._session.feed_many(self._model.encoder.ids_of(words))

    def top_k(self, k: int = 5) -> list[Candidate]:
        """Return the k likeliest words, the likeliest first."""
        return self._candidates(*self._session.top_k(k))

    def complete(self, prefix: str, k: int = 5) -> list[Candidate]:
        """Return the k likeliest words that begin with `prefix`."""
        return self._candidates(*self._session.complete(prefix, k))

    def logprob(self, word: str) -> float:
        """Return the natural log-probability of this next word; an unknown word is an error."""
        return self._session.log_probability(self._model.encoder.known(word))

    def distribution(self) -> NDArray[np.float32]:
        """Return the probabilities of all words, in the order of `vocabulary`."""
        return np.exp(self._session.log_distribution())

    def sample(self, u: float, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> str:
        """Choose the next word by a number in [0, 1), without reading it."""
        return self._model.engine.word(self._session.sample(u, temperature, top_k, top_p))

    def write(
        self,
        max_tokens: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        unknown: bool = False,
    ) -> Iterator[str]:
        """Generate words and read each of them, as `LM.generate` does."""
        if max_tokens < 0:
            raise InferenceError(f"max_tokens must be 0 or more, got {max_tokens}")
        if temperature != 0:
            check_sampling(temperature, top_k, top_p)
        random = np.random.default_rng(seed)

        def words() -> Iterator[str]:
            for _ in range(max_tokens):
                word = self._choose(random, temperature, top_k, top_p)
                if word == UNK and not unknown:
                    word = self._choose_known(random, temperature, top_k, top_p)
                self.feed_words([word])
                yield word

        return words()

    def fork(self) -> "State":
        """Return an independent copy of this state."""
        return State(self._model, self._session.fork())

    def save(self) -> bytes:
        """Return the state as bytes, for the same model and engine."""
        return self._session.save()

    def restore(self, saved: bytes) -> None:
        """Return to a saved state."""
        self._session = self._model.engine.restore(saved)

    def _choose(
        self, random: np.random.Generator, temperature: float, top_k: int, top_p: float
    ) -> str:
        if temperature == 0:
            return self.top_k(1)[0].word
        return self.sample(random.random(), temperature, top_k, top_p)

    def _choose_known(
        self, random: np.random.Generator, temperature: float, top_k: int, top_p: float
    ) -> str:
        """Choose among all words but `<unk>`, as if drawing until another word comes."""
        scores = self._session.log_distribution()
        scores[self._model.encoder.unknown] = -np.inf
        if temperature == 0:
            return self._model.engine.word(int(scores.argmax()))
        return self._model.engine.word(choose(scores, random.random(), temperature, top_k, top_p))

    def _candidates(self, ids: Ids, scores: NDArray[np.float32]) -> list[Candidate]:
        words = map(self._model.engine.word, ids.tolist())
        return [Candidate(*pair) for pair in zip(words, np.exp(scores).tolist(), strict=True)]
