"""A text that is read piece by piece and can be asked for the next word at any time."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from micronet_lm.checksum import SUM_BYTES, checksum_bytes
from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Ids, Session
from micronet_lm.runtime.questions import check_sampling, check_whole, checked_text
from micronet_lm.runtime.reading import Place, Reader
from micronet_lm.runtime.stopping import before_stop
from micronet_lm.runtime.suggestions import Candidate, Learned, Suggestions

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM
    from micronet_lm.runtime.personal import Personal

_MAGIC = b"micronet state 2\n"
_UNCHECKED = b"micronet state 1\n"  # what version 0.1 saved, without a checksum
_TRIES = 32  # draws until a token comes that can be shown; then the likeliest such token is taken


class TextToken(NamedTuple):
    """One token of a text, and what the model expected before it read the token."""

    token: str
    """The model's own token."""
    piece: str
    """What it adds to the text, its space or line end included."""
    log_probability: float | None
    """Natural log-probability of the token, whatever the temperature; None if not asked for."""
    alternatives: dict[str, float]
    """Pieces of the likeliest tokens with their log-probabilities."""


_NOTHING: tuple[float | None, dict[str, float]] = (None, {})


class State:
    """A text that is read piece by piece.

    Pieces of text are put together as they are: `feed("Ret")` and `feed("urn a")` read what
    `feed("Return a")` reads. White space at the end means that the last word is whole.
    """

    def __init__(
        self,
        model: "LM",
        session: Session,
        reader: Reader | None = None,
        personal: "Personal | None" = None,
    ) -> None:
        self._model, self._session, self._personal = model, session, personal
        self._reader = reader or Reader(model.encoder.tokenizer)
        self._asked: Session | None = None  # has read what is pending, too
        self._learned = Learned()
        self._recalls = -1  # version of the personal memory that the session recalls
        self._since = -1 if personal is None else personal.version  # of which it knows all changes

    @property
    def tokens(self) -> int:
        """Number of tokens read."""
        return self._session.tokens + len(self._reader.open())

    def feed(self, text: str) -> None:
        """Read more text: letters, words or pages."""
        self._feed(self._reader.take(text))

    def feed_words(self, words: Sequence[str]) -> None:
        """Read words as the model gives them: no text is split, and a word begins after them."""
        self._feed([*self._reader.close(), *words])
        self._reader.take_words(words)

    def settle(self) -> None:
        """Treat the last word as complete, as if white space followed it."""
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
        checked_text(prefix, "a prefix")
        session, before = self._now()
        if special:
            return self._candidates(*session.complete(prefix, k))
        _check_k(k)
        found = self._model.screen.completions(session, before, prefix, k)
        return [Candidate(*pair) for pair in found]

    def suggest(self, k: int = 3) -> Suggestions:
        """Return the k likeliest words for someone who types, and what of the text they replace.

        After a word that has no end yet these are words that begin like it, in its capitals; where
        fewer than k do, also words that begin so with one or two typing errors. Else they are next
        words, with a capital at the beginning of a sentence.
        """
        _check_k(k)
        self._renew()
        *whole, part = self._reader.open() or [""]
        tokens = self._session.tokens + len(whole) + bool(part)
        word = self._model.screen.looks(part)
        if self._reader.ends_in_space or not word[-1:].isalnum():
            whole, word = [*whole, *[part][: bool(part)]], ""
        session, before = self._session, self._reader.place.last
        if whole or not session.tokens:
            session, before = session.fork(), [before, *whole][-1]
            ids = self._model.encoder.ids_in(session, whole)
            session.feed_many(ids if len(ids) else [self._model.encoder.line_end])
        suggester = self._model.suggester
        if word:
            learned = self._learned if session is self._session else None
            found = suggester.completions(session, before, word, k, learned)
        else:
            found = suggester.next_words(session, before, k, self._reader.ends_in_space)
        found.tokens = tokens
        return found

    def knows(self, token: str) -> bool:
        """Return whether the vocabulary has a token, or this text had it before."""
        return self._session.find(token) is not None

    def logprob(self, word: str) -> float:
        """Return the natural log-probability that this token comes next.

        A word outside the vocabulary needs a spelling model, or to have been read before: it has
        P(`<unk>`) · P_spelling, and the cache's votes.
        """
        session = self._now()[0]
        spelled = None
        if word != UNK and self._model.engine.find(word) is None:
            spelled = self._model.engine.spelling(word)
        number = session.find(word)
        if number is None and spelled is None:
            number = self._model.encoder.known(word)  # which it is not
        logs = [] if number is None else [session.log_probability(number)]
        if spelled is not None:
            logs.append(session.log_probability(self._model.encoder.unknown) + spelled)
        return float(np.logaddexp.reduce(logs))

    def distribution(self) -> NDArray[np.float32]:
        """Return the probabilities of all tokens, in the order of `vocabulary`."""
        return np.exp(self._now()[0].log_distribution())

    def sample(self, u: float, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> str:
        """Choose the next token by a number in [0, 1); it is not read."""
        session = self._now()[0]
        return session.word(session.sample(u, temperature, top_k, top_p))

    def write(
        self,
        max_tokens: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        special: bool = False,
        stop: Sequence[str] = (),
    ) -> Iterator[str]:
        """Choose word after word and read each, as `LM.generate` does."""
        written = self.write_tokens(max_tokens, temperature, top_k, top_p, seed, special)
        if special:
            return before_stop((each.token for each in written), stop)
        return before_stop((each.piece for each in written), stop)

    def write_tokens(
        self,
        max_tokens: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        special: bool = False,
        alternatives: int | None = None,
    ) -> Iterator[TextToken]:
        """Write as `write` does; yield each token with its piece of text.

        With `alternatives` (0 or more) also its log-probability and those of as many likely tokens.
        """
        check_whole("max_tokens", max_tokens, 0)
        if temperature != 0:
            check_sampling(temperature, top_k, top_p)
        random = np.random.default_rng(seed)

        def written() -> Iterator[TextToken]:
            spaced = self._reader.ends_in_space
            self.settle()
            for _ in range(max_tokens):
                before = self._reader.place.last
                token = self._choose(random, temperature, top_k, top_p, special)
                expected = _NOTHING
                if alternatives is not None:
                    expected = self._expected(token, alternatives, spaced)
                self.feed_words([token])
                piece = self._model.screen.piece(before, token)
                yield TextToken(token, piece.removeprefix(" ") if spaced else piece, *expected)
                spaced = False

        return written()

    def read_tokens(self, words: Sequence[str], alternatives: int) -> Iterator[TextToken]:
        """Read words as `feed_words` does; yield each with what the model expected before it.

        A word that the vocabulary lacks has the log-probability of `<unk>`, and the first word of a
        text has none.
        """
        for word in words:
            before = self._reader.place.last
            expected = self._expected(word, alternatives) if self._session.tokens else _NOTHING
            self.feed_words([word])
            yield TextToken(word, self._model.screen.piece(before, word), *expected)

    def fork(self) -> "State":
        """Return an independent copy of this state."""
        self._renew()
        return State(self._model, self._session.fork(), self._reader.fork(), self._personal)

    def save(self) -> bytes:
        """Return the whole state as bytes, for the same model and engine."""
        place = self._reader.place.to_json().encode()
        body = b"".join([len(place).to_bytes(4, "little"), place, self._session.save()])
        return b"".join([_MAGIC, checksum_bytes(body), body])

    def restore(self, saved: bytes) -> None:
        """Restore a saved state."""
        other = restored(self._model, saved)
        self._session, self._reader, self._asked = other._session, other._reader, None
        self._learned, self._recalls = other._learned, -1

    def _renew(self) -> None:
        """Recall what the personal memory knows now, and forget what it forgot."""
        if self._personal is None or (now := self._personal.version) == self._recalls:
            return
        fresh = not self._session.added
        self._personal.renew(self._session, self._since)
        self._learned = Learned(self._personal.index, self._session.added) if fresh else Learned()
        self._asked, self._recalls, self._since = None, now, now

    def _feed(self, tokens: list[str]) -> None:
        self._renew()
        self._asked = None
        if tokens:
            self._session.feed_many(self._model.encoder.ids_in(self._session, tokens))

    def _now(self) -> tuple[Session, str]:
        """Return a session that has read everything, and the last token."""
        self._renew()
        tokens = self._reader.open()
        if not tokens:
            return self._session, self._reader.place.last
        if self._asked is None:
            self._asked = self._session.fork()
            self._asked.feed_many(self._model.encoder.ids_in(self._asked, tokens))
        return self._asked, tokens[-1]

    def _expected(
        self, token: str, k: int, spaced: bool = False
    ) -> tuple[float | None, dict[str, float]]:
        """Return a token's log-probability, and those of what the k likeliest would add."""
        session, before = self._now()
        number = self._model.encoder.id_in(session, token)
        ids, scores = (found.tolist() for found in session.top_k(max(1, k)))
        others: dict[str, float] = {}
        for other, score in zip(ids[:k], scores, strict=False):
            piece = self._model.screen.piece(before, session.word(other))
            others.setdefault(piece.removeprefix(" ") if spaced else piece, score)
        # One number for a token, wherever it is told: clients compare the two.
        likely = dict(zip(ids, scores, strict=True))
        own = likely[number] if number in likely else session.log_probability(number)
        if own == -np.inf:  # a word that was read long ago is unknown again
            own = session.log_probability(self._model.encoder.unknown)
        return own, others

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
            for token in map(self._session.word, ids.tolist()):
                if special or self._model.screen.shows(before, token):
                    return token
            if count >= self._model.engine.vocabulary_size:
                raise InferenceError("the model has no word that can be shown here")
            count *= 8

    def _candidates(self, ids: Ids, scores: NDArray[np.float32]) -> list[Candidate]:
        words = map(self._now()[0].word, ids.tolist())
        return [Candidate(*pair) for pair in zip(words, np.exp(scores).tolist(), strict=True)]


def restored(model: "LM", saved: bytes, personal: "Personal | None" = None) -> State:
    """Return the state that `State.save` made bytes of."""
    body = _body(saved)
    end = 4 + int.from_bytes(body[:4], "little")
    try:
        place = Place.from_json(body[4:end].decode())
    except UnicodeDecodeError:
        raise InferenceError("the saved state is damaged: save it again") from None
    session = model.engine.restore(body[end:])
    return State(model, session, Reader(model.encoder.tokenizer, place), personal)


def _body(saved: bytes) -> bytes:
    """Return what is behind the magic bytes and the checksum, which is compared."""
    if isinstance(saved, bytes):
        if saved.startswith(_MAGIC):
            start = len(_MAGIC) + SUM_BYTES
            body, kept = saved[start:], saved[len(_MAGIC) : start]
            if checksum_bytes(body) != kept:
                raise InferenceError("the saved state is damaged: save it again")
            return body
        if saved.startswith(_UNCHECKED) and len(saved) >= len(_UNCHECKED) + 4:
            return saved[len(_UNCHECKED) :]
    raise InferenceError("these bytes are not a saved state: give bytes that State.save returned")


def _check_k(k: int) -> None:
    check_whole("k", k, 1)
