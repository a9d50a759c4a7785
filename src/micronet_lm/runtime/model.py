"""Text-level API for packed models: they score, predict and write words."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.metadata import strict_json
from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Engine, Ids
from micronet_lm.runtime.engines import Name, open_engine
from micronet_lm.runtime.native import NativeEngine
from micronet_lm.runtime.native_words import NativeScreen, NativeSuggester
from micronet_lm.runtime.open_vocabulary import OpenScore, open_score
from micronet_lm.runtime.personal import Personal
from micronet_lm.runtime.places import file_to_open
from micronet_lm.runtime.questions import check_threads, checked_text
from micronet_lm.runtime.scores import (
    LineScore,
    Perplexity,
    Scored,
    Scores,
    totals,
    warn_of_unknown,
)
from micronet_lm.runtime.screen import Screen
from micronet_lm.runtime.state import State, restored
from micronet_lm.runtime.suggestions import Candidate, Suggester, Suggestions
from micronet_lm.runtime.words import Encoder, Words


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of a packed model."""

    width: int
    layers: int
    context: int
    cache: int
    """Hidden states that the cache holds, 0 without one."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> "Shape":
        """Read them from the metadata of a packed file."""
        own = {name: metadata["model"][name] for name in ("width", "layers", "context")}
        return cls(**own, cache=(metadata["cache"] or {"size": 0})["size"])


def load(model: Path | str = "demo", engine: Name = "auto") -> "LM":
    """Open a packed model.

    `model` is a packed file, the folder of a run or pipeline that holds one, or the name of a model
    that ships with the package: `demo` or `wikitext-2`. `auto` takes the native engine where it is
    built, else NumPy.
    """
    return LM(open_engine(file_to_open(model), engine))


class LM:
    """A packed language model.

    A text is split into tokens as the training corpus was; a newline is the token `<eos>`, and
    words that the vocabulary lacks become `<unk>`. White space around a text does not count.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        """The engine underneath, which works by word ids."""
        metadata = strict_json(engine.metadata, "its metadata")
        self.shape = Shape.of(metadata)
        """Sizes of the network and its cache."""
        self.card: Mapping[str, Any] = metadata["card"]
        """What the model is and where it comes from."""
        self.vocabulary = Words(engine)
        """All words; a word's place is its id."""
        self.encoder = Encoder(engine, metadata["tokenizer"], learns=metadata["cache"] is not None)
        """From text to ids."""
        own = isinstance(engine, NativeEngine)  # it finds words for a screen itself
        self.screen = (NativeScreen if own else Screen)(engine, self.encoder.tokenizer)
        """From tokens to words on a screen."""
        self.suggester = (NativeSuggester if own else Suggester)(self)
        """From what was typed to words that are offered."""

    def __repr__(self) -> str:
        return f"LM({self.card.get('name', 'unnamed')!r}, {len(self.vocabulary)} words)"

    def perplexity(self, text: str, threads: int = 1) -> Perplexity:
        """Return exp of the mean negative log-probability of every token after the first.

        The number also has `tokens`, `unknown` and `unknown_share`.
        """
        ids = self.encoder.ids(text)
        scores = self.engine.score(ids, threads)
        unknown = int(np.count_nonzero(ids[1:] == self.encoder.unknown))
        warn_of_unknown(unknown, len(scores))
        value = float(np.exp(min(-scores.mean(dtype=np.float64), 709.0)))
        return Perplexity(value, len(scores), unknown)

    def score(self, text: str, threads: int = 1) -> Scores:
        """Score every token after the first, each from all tokens before it.

        The list also has `log_probability`, `perplexity`, `unknown` and `unknown_share`.
        """
        ids = self.encoder.ids(text)
        scores = self._scored(ids, self.engine.score(ids, threads))
        warn_of_unknown(scores.unknown, len(scores))
        return scores

    def score_batch(self, texts: Sequence[str], threads: int = 1) -> list[Scores]:
        """Score several texts, each on its own; `threads` changes only the speed."""
        scores = self._score_batch(_checked_texts(texts), threads)
        warn_of_unknown(*totals(scores))
        return scores

    def score_lines(self, lines: Sequence[str], threads: int = 1) -> list[LineScore]:
        """Score lines, each on its own: all words of a line count, and its end.

        Unlike with `score_batch` a line may have one word or none, and no newline inside.
        """
        for number, line in enumerate(_checked_texts(lines)):
            if "\n" in line or "\r" in line:
                raise InferenceError(
                    f"line {number} has a newline inside: split texts at line ends, or take "
                    "score_batch"
                )
        scored = self._score_batch([f"\n{line}\n" for line in lines], threads)
        warn_of_unknown(*totals(scored))
        return [
            LineScore(line, own.log_probability, own.perplexity, len(own), own.unknown)
            for line, own in zip(lines, scored, strict=True)
        ]

    def bits_per_byte(self, text: str, threads: int = 1) -> float:
        """Return the bits per byte of a text; words outside the vocabulary are spelled.

        Unlike a perplexity with `<unk>` it can be compared with any other model's. A model
        without a spelling model refuses texts with unknown words.
        """
        return self.open_score(text, threads).bits_per_byte

    def open_score(self, text: str, threads: int = 1, *, learn: bool = True) -> OpenScore:
        """Score every character of a text once: bits per byte and per character.

        The cache learns new words as they come; without `learn` they are all `<unk>` to it.
        """
        return open_score(self, text, threads, learn=learn)

    @property
    def can_spell(self) -> bool:
        """Whether the file has a spelling model: words outside the vocabulary have chances."""
        return self.engine.spelling(UNK) is not None

    def personal(self, path: Path | str, *, incognito: bool = False) -> Personal:
        """Open a person's memory, a private file that `learn` fills; it need not exist yet.

        Questions with `personal` use it. With `incognito` it is used, but nothing is learned.
        """
        return Personal(self, path, incognito=incognito)

    def top_k(
        self, text: str, k: int = 5, special: bool = False, personal: Personal | None = None
    ) -> list[Candidate]:
        """Return the k likeliest words after a text; after a line's end where it is empty.

        They are words that can be put on a screen; `special` gives the model's own tokens instead,
        with `<unk>`, `<eos>` and spacing marks.
        """
        return self.after(text, personal).top_k(k, special)

    def top_k_batch(
        self, texts: Sequence[str], k: int = 5, special: bool = False, threads: int = 1
    ) -> list[list[Candidate]]:
        """Return the k likeliest words after each text; `threads` changes only the speed."""
        check_threads(threads)
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda text: self.top_k(text, k, special), _checked_texts(texts)))

    def complete(
        self,
        text: str,
        prefix: str,
        k: int = 5,
        special: bool = False,
        personal: Personal | None = None,
    ) -> list[Candidate]:
        """Return the k likeliest words after a text that begin with `prefix`.

        Small letters find capitals and the other way round, unless `special` asks for tokens.
        """
        return self.after(text, personal).complete(prefix, k, special)

    def suggest(self, text: str, k: int = 3, personal: Personal | None = None) -> Suggestions:
        """Return the k likeliest words for someone who has typed a text.

        After a word that has no end yet these are words that begin like it, or nearly so where few
        do, else next words. The list's `replaces` is the end of the text that a picked word takes
        the place of.
        """
        if personal is None:
            return self.suggester.of_text(text, k)
        state = self.start(personal)
        state.feed(text)
        return state.suggest(k)

    def generate(
        self,
        text: str = "",
        max_tokens: int = 50,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        special: bool = False,
        stop: Sequence[str] = (),
    ) -> Iterator[str]:
        """Write on after a text, word by word; the same seed gives the same words.

        A temperature of 0 always takes the likeliest word. `top_k` above 0 and `top_p` below 1
        leave only the likeliest words to choose from. What comes are pieces of text with their
        spaces and line ends: `text + "".join(pieces)` is what is shown. `special` gives the model's
        own tokens instead, `<unk>` among them, of which `join` makes text. The text ends before the
        first of the strings in `stop`.
        """
        state = self.begun(text)
        return state.write(max_tokens, temperature, top_k, top_p, seed, special, stop)

    def join(self, words: Sequence[str]) -> str:
        """Put tokens together to text."""
        return self.encoder.tokenizer.join(words)

    def start(self, personal: Personal | None = None) -> State:
        """Start a text, with a person's memory if one is given."""
        return State(self, self.engine.start(), personal=personal)

    def begun(self, text: str, personal: Personal | None = None) -> State:
        """Return a state that has read a text, a line's end where it is empty."""
        state = self.start(personal)
        state.feed(text)
        if not state.tokens:
            state.feed("\n")
        return state

    def after(self, text: str, personal: Personal | None = None) -> State:
        """Return a state that has read a text and takes its last word for whole."""
        state = self.begun(text, personal)
        state.settle()
        return state

    def restore(self, saved: bytes, personal: Personal | None = None) -> State:
        """Return a state that was saved; a personal memory is never saved with it."""
        return restored(self, saved, personal)

    def _score_batch(self, texts: Sequence[str], threads: int) -> list[Scores]:
        ids = [self.encoder.ids(text) for text in texts]
        for number, own in enumerate(ids):
            if len(own) < 2:
                raise InferenceError(
                    f"text {number} has {len(own)} tokens and nothing to predict: it needs 2 or "
                    "more; leave it out, or take score_lines"
                )
        scores = self.engine.score_batch(ids, threads)
        return [self._scored(own, score) for own, score in zip(ids, scores, strict=True)]

    def _scored(self, ids: Ids, scores: NDArray[np.float32]) -> Scores:
        words = map(self.engine.word, ids[1:].tolist())
        return Scores(Scored(*pair) for pair in zip(words, scores.tolist(), strict=True))


def _checked_texts(texts: Sequence[str]) -> Sequence[str]:
    """Refuse one text where several are meant: its letters would be the texts."""
    if isinstance(texts, str):
        raise InferenceError("texts must be a list of texts, got one text: write [text]")
    for number, text in enumerate(texts):
        checked_text(text, f"text {number}")
    return texts
