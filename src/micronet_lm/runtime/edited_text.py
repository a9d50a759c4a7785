"""Suggestions for a text that is being edited: each keystroke costs what it changed."""

from typing import TYPE_CHECKING, NamedTuple

from micronet_lm.runtime.state import State
from micronet_lm.runtime.suggestions import Suggestions

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM


class _Kept(NamedTuple):
    length: int
    """How much of the text the state has read."""
    state: State


class EditedText:
    """A text that someone types, and sometimes goes back in.

    States are kept at the beginnings of earlier words, the farther back the fewer, so that a text
    that was changed near its end is not read again from its beginning.
    """

    def __init__(self, lm: "LM") -> None:
        self._text = ""
        self._kept = [_Kept(0, lm.start())]

    @property
    def kept(self) -> int:
        """How many states are held; it grows with the logarithm of the text's length."""
        return len(self._kept)

    def suggest(self, text: str, k: int = 3) -> Suggestions:
        """Return the k likeliest words for someone who has typed a text."""
        return self.read(text).suggest(k)

    def read(self, text: str) -> State:
        """Return a state that has read a text; it is the caller's own."""
        same = _common(self._text, text)
        while self._kept[-1].length > same:
            self._kept.pop()
        begin, state = self._kept[-1]
        settled = _last_word(text)
        if settled > begin:
            state = state.fork()
            state.feed(text[begin:settled])
            self._kept = _thinned([*self._kept, _Kept(settled, state)])
            begin = settled
        self._text = text
        own = state.fork()
        own.feed(text[begin:])
        return own


def _last_word(text: str) -> int:
    """Return where the last word begins: what is before it is rarely changed."""
    return next((n for n in range(len(text), 0, -1) if text[n - 1].isspace()), 0)


def _common(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginnings."""
    if other.startswith(one):
        return len(one)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _thinned(kept: list[_Kept]) -> list[_Kept]:
    """Keep the newest states, and older ones at distances that double."""
    newest = kept[-1]
    left, gap = [newest], 1
    for one in reversed(kept[1:-1]):
        distance = newest.length - one.length
        if distance >= gap:
            left.append(one)
            gap = 2 * distance
    return [kept[0], *reversed(left)]
