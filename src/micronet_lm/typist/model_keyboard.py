"""A packed model as a keyboard."""

from collections.abc import Sequence

from micronet_lm.runtime.model import LM
from micronet_lm.runtime.personal import Personal


class ModelKeyboard:
    """Suggests a packed model's words.

    With `learning` one session reads the whole text, so that the cache remembers all of it;
    without, every line begins a new session that remembers nothing. With a `personal` memory every
    line is a message of its own, too, but the memory learns it at its end.
    """

    def __init__(self, lm: LM, *, learning: bool = True, personal: Personal | None = None) -> None:
        self._lm, self._learning, self._personal = lm, learning and personal is None, personal
        self._state = lm.start(personal)
        self._line = ""

    def read(self, text: str) -> None:
        """Read what was typed or picked next."""
        if not self._learning and "\n" in text:
            whole, _, text = text.rpartition("\n")
            if self._personal is not None:
                self._personal.learn(f"{self._line}{whole}\n", save=False)
            self._state, self._line = self._lm.start(self._personal), ""
        self._line += text
        self._state.feed(text)

    def suggest(self, k: int) -> Sequence[str]:
        """Return the k best whole words for the one that is being typed or begins here."""
        return [candidate.word for candidate in self._state.suggest(k)]

    def knows(self, word: str) -> bool:
        """Return whether the vocabulary or the text so far has a word, also in small letters."""
        return any(map(self._state.knows, self._lm.screen.tokens_of(word)))
