"""Type a text with a keyboard that suggests words, and count what its suggestions save.

The typist looks at the suggestions before each letter of a word and picks the word as soon as one
of the slots shows it exactly, capitals included. A word is a run of letters, digits and
underscores, with apostrophes inside; every other character is typed by hand.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from micronet_lm.errors import InferenceError
from micronet_lm.typist.strokes import Strokes

RECALLED = 3
"""Suggestions that the second of the two recalls looks at."""

_PIECE = re.compile(r"(\w+(?:['’]\w+)*)|(\s|\S)")


class Keyboard(Protocol):
    """What suggests words to someone who types."""

    def read(self, text: str) -> None:
        """Read what was typed or picked next."""

    def suggest(self, k: int) -> Sequence[str]:
        """Return the k best whole words for the one that is being typed or begins here."""

    def knows(self, word: str) -> bool:
        """Return whether a word could be suggested at all."""


@dataclass(frozen=True, kw_only=True)
class Typing:
    """The result of typing a text with suggestions."""

    slots: int
    """Suggestions that are shown at once."""
    characters: int
    keystrokes: int
    savings: float
    """100 · (characters − keystrokes) / characters."""
    words: int
    top_1: float
    """Share of the words that are the first suggestion before their first letter, in per cent."""
    top_3: float
    """Share that is among the first three."""
    unknown: float
    """Share of the words that the keyboard did not know when they were typed, in per cent."""
    latency: dict[str, float]
    """Milliseconds from a keystroke to the suggestions: `p50`, `p95` and `p99`."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return asdict(self)


def measure(
    keyboard: Keyboard,
    text: str,
    *,
    slots: int = 3,
    advance: Callable[[int], None] | None = None,
) -> Typing:
    """Type a text with a keyboard; `advance` is told of the characters that are done."""
    if slots < 1:
        raise InferenceError(f"slots must be 1 or more, got {slots}")
    strokes, watch = Strokes(), _Watch(keyboard)
    words = first = among = unknown = 0
    for found in _PIECE.finditer(text):
        word, other = found[1], found[2]
        if other is not None:
            if other == " ":
                strokes.space()
            else:
                strokes.by_hand()
            watch.read(other)
        else:
            words += 1
            unknown += not keyboard.knows(word)
            shown = watch.suggest(max(slots, RECALLED))
            first += word in shown[:1]
            among += word in shown[:RECALLED]
            typed = 0
            while word not in shown[:slots] and typed < len(word):
                watch.read(word[typed])
                typed += 1
                if typed < len(word):
                    shown = watch.suggest(slots)
            watch.read(word[typed:])
            strokes.word(len(word), typed if typed < len(word) else None)
        if advance is not None:
            advance(len(found[0]))
    if not words:
        raise InferenceError("the text has no word to suggest: give one with letters or digits")
    return Typing(
        slots=slots,
        characters=strokes.characters,
        keystrokes=strokes.keystrokes,
        savings=strokes.savings,
        words=words,
        top_1=100 * first / words,
        top_3=100 * among / words,
        unknown=100 * unknown / words,
        latency=watch.percentiles(),
    )


class _Watch:
    """A keyboard whose answers are timed: all work since the answer before counts."""

    def __init__(self, keyboard: Keyboard) -> None:
        self._keyboard = keyboard
        self._seconds = 0.0
        self._answers: list[float] = []

    def read(self, text: str) -> None:
        """Read what was typed."""
        begin = time.perf_counter()
        if text:
            self._keyboard.read(text)
        self._seconds += time.perf_counter() - begin

    def suggest(self, k: int) -> Sequence[str]:
        """Ask for words."""
        begin = time.perf_counter()
        shown = self._keyboard.suggest(k)
        self._answers.append(self._seconds + time.perf_counter() - begin)
        self._seconds = 0.0
        return shown

    def percentiles(self) -> dict[str, float]:
        """Return percentiles of the time per answer, in milliseconds."""
        values = 1000 * np.percentile(self._answers, [50, 95, 99])
        return dict(zip(("p50", "p95", "p99"), values.tolist(), strict=True))
