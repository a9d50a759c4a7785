"""A text that is read piece by piece and can be asked for the next word at any time."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Ids, Session
from micronet_lm.runtime.questions import check_sampling
from micronet_lm.runtime.reading import Place, Reader

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM

_MAGIC = b"micronet state 1\n"
_TRIES = 32  # draws until a token comes that can be shown; then the likeliest such token is taken


class Candidate(NamedTuple):
    """A word that may come next, and its probability."""

    word: str
    probability: float


class State:
    """A text that is read on and on.

    Pieces of text are put together as they are: `feed("Ret")` and `feed("urn a")` read what
    `feed("Return a")` reads. White space at the end means that the last word is whole.
    """

    def __init__(self, model: "LM", session: Session, reader: Reader | None = None) -> None:
        self._model, self._session = model, session
        self._reader = reader or Reader(model.encoder.tokenizer)
        self._asked: Session | None = None  # has read what is pending, too

    @property
    def tokens(self) -> int:
        """How many tokens were read."""
        return self._session.tokens + len(self._reader.open())

    def feed(self, text: str) -> None:
        """Read more text: letters, words or pages."""
        self._feed(self._reader.take(text))

    def feed_words(self, words: Sequence[str]) -> None:
        """Read words as the model gives them: no text is split, and a word begins after them."""
        self._feed([*self._reader.close(), *words])
        self._reader.take_words(words)

    def settle(self) -> None:
        """Take the last word for whole, as white space after it would."""
        self._feed(self._reader.close())

    def top_k(self, k: int = 5, special: bool = False) -> list[Candidate]:
        """Return the k likeliest words, the likeliest first.

        They are words that can be put on a screen after the text. `special` gives the model's own
        tokens instead, with `<unk>`, `<eos>` and spacing marks.
        """
        session, before = self._now()
        if special:
            return self._candidates(*session.top_k(k))
        _check_k(k)
        return [Candidate(*found) for found in self._model.screen.next_words(session, before, k)]

    def complete(self, prefix: str, k: int = 5, special: bool = False) -> list[Candidate]:
        """Return the k likeliest words that begin with `prefix`, in small letters or capitals.

        `special` takes the letters as they are and gives the model's own tokens.
        """
        session, before = self._now()
        if special:
            return self._candidates(*session.complete(prefix, k))
        _check_k(k)
        found = self._model.screen.completions(session, before, prefix, k)
        return [Candidate(*pair) for pair in found]

    def suggest(self, k: int = 3) -> list[Candidate]:
        """Return the k likeliest words for someone who types.

        After a word that has no end yet these are words that begin like it, else next words.
        """
        _check_k(k)
        *whole, part = self._reader.open() or [""]
        word = self._model.screen.looks(part)
        if self._reader.ends_in_space or not word[-1:].isalnum():
            whole, word = [*whole, *[part][: bool(part)]], ""
        session, before = self._session, self._reader.place.last
        if whole or not session.tokens:
            session, before = session.fork(), [before, *whole][-1]
            tokens = self._model.encoder.ids_of(whole)
            session.feed_many(tokens if len(tokens) else [self._model.encoder.line_end])
        screen = self._model.screen
        if word:
            found = screen.completions(session, before, word, k)
        else:
            found = screen.next_words(session, before, k)
        return [Candidate(*pair) for pair in found]

    def logprob(self, word: str) -> float:
        """Natural log-probability that this token comes next; an unknown word is an error."""
        number = self._model.encoder.known(word)
        return self._now()[0].log_probability(number)

    def distribution(self) -> NDArray[np.float32]:
        """Probabilities of all tokens, in the order of `vocabulary`."""
        return np.exp(self._now()[0].log_distribution())

    def sample(self, u: float, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> str:
        """Choose the next token by a number in [0, 1); it is not read."""
        number = self._now()[0].sample(u, temperature, top_k, top_p)
        return self._model.engine.word(number)

    def write(
        self,
        max_tokens: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        special: bool = False,
    ) -> Iterator[str]:
        """Choose word after word and read each, as `LM.generate` does."""
        if max_tokens < 0:
            raise InferenceError(f"max_tokens must be 0 or more, got {max_tokens}")
        if temperature != 0:
            check_sampling(temperature, top_k, top_p)
        random = np.random.default_rng(seed)
        screen = self._model.screen

        def pieces() -> Iterator[str]:
            spaced = self._reader.ends_in_space
            self.settle()
            for _ in range(max_tokens):
                before = self._reader.place.last
                token = self._choose(random, temperature, top_k, top_p, special)
                self.feed_words([token])
                if special:
                    yield token
                    continue
                piece = screen.piece(before, token)
                yield piece.removeprefix(" ") if spaced else piece
                spaced = False

        return pieces()

    def fork(self) -> "State":
        """Give a second state that has read the same and is read on by itself."""
        return State(self._model, self._session.fork(), self._reader.fork())

    def save(self) -> bytes:
        """Give all of it as bytes, for the same model and engine."""
        place = self._reader.place.to_json().encode()
        return b"".join([_MAGIC, len(place).to_bytes(4, "little"), place, self._session.save()])

    def restore(self, saved: bytes) -> None:
        """Go back to what was saved."""
        other = restored(self._model, saved)
        self._session, self._reader, self._asked = other._session, other._reader, None

    def _feed(self, tokens: list[str]) -> None:
        self._asked = None
        if tokens:
            self._session.feed_many(self._model.encoder.ids_of(tokens))

    def _now(self) -> tuple[Session, str]:
        """Return a session that has read everything, and the last token."""
        tokens = self._reader.open()
        if not tokens:
            return self._session, self._reader.place.last
        if self._asked is None:
            self._asked = self._session.fork()
            self._asked.feed_many(self._model.encoder.ids_of(tokens))
        return self._asked, tokens[-1]

    def _choose(
        self,
        random: np.random.Generator,
        temperature: float,
        top_k: int,
        top_p: float,
        special: bool,
    ) -> str:
        before = self._reader.place.last
        if temperature == 0:
            return self._likeliest(before, special)
        for _ in range(_TRIES):
            token = self.sample(random.random(), temperature, top_k, top_p)
            if special or self._model.screen.shows(before, token):
                return token
        return self._likeliest(before, special)

    def _likeliest(self, before: str, special: bool) -> str:
        count = 1 if special else 8
        while True:
            ids, _ = self._session.top_k(count)
            for token in map(self._model.engine.word, ids.tolist()):
                if special or self._model.screen.shows(before, token):
                    return token
            if count >= self._model.engine.vocabulary_size:
                raise InferenceError("the model has no word that can be shown here")
            count *= 8

    def _candidates(self, ids: Ids, scores: NDArray[np.float32]) -> list[Candidate]:
        words = map(self._model.engine.word, ids.tolist())
        return [Candidate(*pair) for pair in zip(words, np.exp(scores).tolist(), strict=True)]


def restored(model: "LM", saved: bytes) -> State:
    """Return the state that `State.save` made bytes of."""
    start = len(_MAGIC) + 4
    if not saved.startswith(_MAGIC) or len(saved) < start:
        raise InferenceError("these bytes are not a state that State.save gave")
    end = start + int.from_bytes(saved[start - 4 : start], "little")
    try:
        place = Place.from_json(saved[start:end].decode())
    except UnicodeDecodeError:
        raise InferenceError("the saved state is damaged: save it again") from None
    session = model.engine.restore(saved[end:])
    return State(model, session, Reader(model.encoder.tokenizer, place))


def _check_k(k: int) -> None:
    if k < 1:
        raise InferenceError(f"k must be 1 or more, got {k}")
