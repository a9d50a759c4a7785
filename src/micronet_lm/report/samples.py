"""Samples of a model: continuations of lines of the test split, and suggested next words."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from micronet_lm.artifact.packing import model_of_run
from micronet_lm.artifact.writer import write_packed
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.detokenize import detokenize
from micronet_lm.corpus.vocabulary import EOS, UNK
from micronet_lm.runtime.model import LM, load
from micronet_lm.runtime.suggestions import Candidate

LINES, PROMPT, WORDS = 3, 5, 30
"""Number of lines, words that each begins with, and words that the model adds."""

BEFORE = 500
"""Tokens of the split read before a line: with a nearly empty cache, text repeats itself."""

TEMPERATURE, TOP_K = 0.8, 40

ASKED, SHOWN, NEXT = 1000, 8, 5
"""Number of places where the model suggests words, of those shown, and of words per place."""

SEEN = 8
"""Tokens before a shown place that a reader sees."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A line's beginning, how the line continues, and how the model continues."""

    beginning: str
    true: str
    written: str


@dataclass(frozen=True, kw_only=True)
class Suggested:
    """The model's suggestions at one place, and the true next word."""

    before: str
    """The last tokens that the model has read."""
    true: str
    words: tuple[Candidate, ...]
    """Its suggestions, the likeliest first."""

    @property
    def place(self) -> int | None:
        """Rank of the true word among the suggestions, from 1."""
        return next((n for n, own in enumerate(self.words, 1) if own.word == self.true), None)


@dataclass(frozen=True, kw_only=True)
class Suggestions:
    """Suggestions at consecutive words of the test split."""

    asked: int
    """Number of places with a word that can be shown: no line end, no unknown word."""
    hits: tuple[int, ...]
    """Number of places where the true word is among the first 1, 2, ... suggestions."""
    shown: tuple[Suggested, ...]
    """Some of the places, evenly spread."""


def write_samples(packed: Path, corpus: Corpus) -> list[Sample]:
    """Continue beginnings of lines with a packed model."""
    lm, ids = load(packed), corpus.split("test")
    found = []
    for number, low in enumerate(_beginnings(corpus)):
        high = min(len(ids), low + PROMPT)
        state = lm.start()
        state.feed_words(corpus.vocabulary.decode(ids[max(0, low - BEFORE) : high]))
        written = "".join(state.write(WORDS, TEMPERATURE, TOP_K, seed=number))
        sample = Sample(
            beginning=_readable(corpus.decode(ids[low:high]), corpus),
            true=_readable(corpus.decode(ids[high : high + WORDS]), corpus),
            written=_readable(written, corpus),
        )
        found.append(sample)
    return found


def suggest_words(packed: Path, corpus: Corpus) -> Suggestions | None:
    """Suggest next words at consecutive places with a packed model; None if there is no place."""
    lm, ids = load(packed), corpus.split("test")
    start = min(BEFORE, len(ids) // 2)
    tokens = corpus.vocabulary.decode(ids[: start + ASKED])
    state = lm.start()
    state.feed_words(tokens[:start])
    found = []
    for place in range(start, len(tokens)):
        true = _shown_word(lm, tokens[place - 1], tokens[place])
        if true:
            before = _readable(corpus.tokenizer.join(tokens[max(0, place - SEEN) : place]), corpus)
            words = tuple(state.top_k(NEXT))
            found.append(Suggested(before=before, true=true, words=words))
        state.feed_words([tokens[place]])
    if not found:
        return None
    places = [own.place or NEXT + 1 for own in found]
    spread = np.linspace(0, len(found) - 1, min(SHOWN, len(found)) + 2).astype(int)[1:-1]
    return Suggestions(
        asked=len(found),
        hits=tuple(sum(place <= k for place in places) for k in range(1, NEXT + 1)),
        shown=tuple(found[place] for place in dict.fromkeys(spread.tolist())),
    )


@contextmanager
def packed_run(run: Path, corpus: Corpus) -> Iterator[Path]:
    """Pack a run's best model into a temporary file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        write_packed(file, model_of_run(run, corpus))
        yield file


def _shown_word(lm: LM, before: str, token: str) -> str:
    """Return a token as a suggestion; an empty text if it cannot be suggested."""
    return lm.screen.looks(token) if lm.screen.fits(before, token) else ""


def _readable(text: str, corpus: Corpus) -> str:
    """Return text in one line with the usual spacing, as people read it."""
    lines = " ".join(text.split())
    return detokenize(lines) if corpus.tokenizer.name == "wikitext" else lines


def _beginnings(corpus: Corpus) -> list[int]:
    """Return positions of long lines that begin with known words, spread over the test split."""
    ids, end, unknown = corpus.split("test"), *map(corpus.vocabulary.id, (EOS, UNK))
    ends = [-1, *(int(place) for place in (ids == end).nonzero()[0])]
    lines = [
        low + 1
        for low, high in pairwise(ends)
        if high - low > 3 * PROMPT and unknown not in ids[low + 1 : low + 1 + PROMPT]
    ]
    stride = max(1, len(lines) // LINES)
    return lines[stride // 2 :: stride][:LINES] or [0]
