"""Text that ends before a stop string, however the pieces that it comes in are cut."""

from collections.abc import Iterable, Iterator, Sequence

from micronet_lm.errors import InferenceError


class StopStrings:
    """Lets text pass until one of the stop strings comes; what may begin one is held back."""

    def __init__(self, stop: Sequence[str]) -> None:
        if isinstance(stop, str):
            raise InferenceError("stop must be a list of strings, got one string: write [stop]")
        if not all(stop):
            raise InferenceError("a stop string must have one character or more, got none")
        self._stop = tuple(stop)
        self._held = ""
        self.found = False
        """Whether a stop string came; nothing passes after it."""

    def take(self, piece: str) -> str:
        """Read a piece; return what can be shown now."""
        if self.found:
            return ""
        text = self._held + piece
        places = [place for place in map(text.find, self._stop) if place >= 0]
        if places:
            self.found, self._held = True, ""
            return text[: min(places)]
        kept = max((_overlap(text, stop) for stop in self._stop), default=0)
        shown, self._held = text[: len(text) - kept], text[len(text) - kept :]
        return shown

    def rest(self) -> str:
        """Return what was held back, at the end of the text."""
        rest, self._held = self._held, ""
        return rest


def before_stop(pieces: Iterable[str], stop: Sequence[str]) -> Iterator[str]:
    """Yield pieces up to a stop string."""
    strings = StopStrings(stop)  # a wrong one is refused here, not at the first piece
    if not stop:
        return iter(pieces)

    def shown() -> Iterator[str]:
        for piece in pieces:
            if text := strings.take(piece):
                yield text
            if strings.found:
                return
        if text := strings.rest():
            yield text

    return shown()


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of a text that a stop string begins with."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
