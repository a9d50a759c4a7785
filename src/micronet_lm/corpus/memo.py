"""A memo that is bounded in bytes: text that never repeats must not fill the memory."""

import sys
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

BUDGET = 128 << 20
"""Most bytes that one memo holds, keys and values."""
LONGEST = 1 << 10
"""Most characters of a text that is remembered: longer ones hardly repeat."""
_SLOT = 120
"""Bytes of an entry in the dictionary itself, and of the containers of its value."""


class Memo(dict[str, T]):
    """A dictionary that forgets everything when it would grow beyond its budget."""

    def __init__(self, budget: int = BUDGET) -> None:
        super().__init__()
        self._budget = self._left = budget

    def remember(self, text: str, value: T, parts: Iterable[object] = ()) -> T:
        """Keep a value that consists of `parts`, unless its text is too long to come again."""
        if len(text) > LONGEST:
            return value
        cost = _SLOT + sys.getsizeof(text) + sum(8 + sys.getsizeof(part) for part in parts)
        self._left -= cost
        if self._left < 0:
            self.clear()
            self._left = self._budget - cost
        self[text] = value
        return value


def shared(words: Iterable[str]) -> list[str]:
    """Return words of which equal ones are one object: a long text has few different ones."""
    same: dict[str, str] = {}
    return [same.setdefault(word, word) for word in words]
