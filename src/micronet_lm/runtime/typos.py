"""Beginnings of words that someone may have meant who typed others, by the errors between them.

An error is a wrong letter, one too many, one missing, or two letters swapped. A letter beside the
right one on the keyboard, and swapped letters, cost half as much as any other error.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field

ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
"""Keys of the keyboard; each row is moved by half a key against the one above."""
SLIP, ERROR = 0.5, 1.0
"""Cost of a slip to an adjacent key or of a swap, and of any other error."""
_LAST = "\U0010ffff"


def _neighbours() -> frozenset[tuple[str, str]]:
    places = {
        key: (row, column) for row, keys in enumerate(ROWS) for column, key in enumerate(keys)
    }
    near = set()
    for one, (row, column) in places.items():
        for other, (other_row, other_column) in places.items():
            down = other_row - row
            across = other_column - column
            if (down == 0 and abs(across) == 1) or (down == 1 and across in (-1, 0)):
                near |= {(one, other), (other, one)}
    return frozenset(near)


NEAR = _neighbours()
"""Pairs of keys that touch each other."""


class Beginnings:
    """Words in small letters, sorted, so that those with one beginning are side by side."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = sorted({word.lower() for word in words if word})

    def add(self, word: str) -> None:
        """Add one word."""
        low = word.lower()
        place = bisect_left(self._words, low)
        if low and self._words[place : place + 1] != [low]:
            insort(self._words, low)

    def copy(self) -> "Beginnings":
        """Return an index of its own with the same words."""
        twin = Beginnings(())
        twin._words = self._words.copy()
        return twin

    def near(self, typed: str, limit: float, visits: int = 4000) -> dict[str, float]:
        """Return beginnings of words and their costs, all that cost at most `limit`.

        The search ends after this many visits of beginnings, with what it has found by then.
        """
        search = _Search(self._words, typed.lower(), limit, visits)
        search.walk(0, len(self._words), "", 0, 0.0)
        return search.found


@dataclass
class _Search:
    words: list[str]
    typed: str
    limit: float
    visits: int
    found: dict[str, float] = field(default_factory=dict)

    def walk(self, low: int, high: int, prefix: str, at: int, cost: float) -> None:
        """Continue with words[low:high], which begin with `prefix`, and from letter `at`."""
        self.visits -= 1
        if self.visits < 0 or cost > self.limit or low >= high:
            return
        if at == len(self.typed):
            if prefix and cost < self.found.get(prefix, float("inf")):
                self.found[prefix] = cost
            return
        letter, depth = self.typed[at], len(prefix)
        self._take(low, high, prefix, letter, at + 1, cost)
        if cost + SLIP > self.limit:
            return
        if at + 1 < len(self.typed) and self.typed[at + 1] != letter:
            swapped = self.typed[at + 1] + letter
            begin, end = self._range(low, high, prefix + swapped)
            self.walk(begin, end, prefix + swapped, at + 2, cost + SLIP)
        if depth:  # the first letter is seldom missing or too much
            self.walk(low, high, prefix, at + 1, cost + ERROR)
        place = low
        while place < high:
            if len(self.words[place]) == depth:
                place += 1
                continue
            other = self.words[place][depth]
            # At least this word, even where the last character of all follows.
            end = max(place + 1, self._range(place, high, prefix + other)[1])
            if other != letter:
                wrong = SLIP if (other, letter) in NEAR else ERROR
                if depth or wrong == SLIP:
                    self.walk(place, end, prefix + other, at + 1, cost + wrong)
                if depth:
                    self.walk(place, end, prefix + other, at, cost + ERROR)
            place = end

    def _take(self, low: int, high: int, prefix: str, letter: str, at: int, cost: float) -> None:
        begin, end = self._range(low, high, prefix + letter)
        self.walk(begin, end, prefix + letter, at, cost)

    def _range(self, low: int, high: int, prefix: str) -> tuple[int, int]:
        begin = bisect_left(self.words, prefix, low, high)
        return begin, bisect_left(self.words, prefix + _LAST, begin, high)
