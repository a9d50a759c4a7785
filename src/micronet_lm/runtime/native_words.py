"""Words on a screen, found by the native engine itself: what `screen` and `suggestions` do, faster.

One call of the engine takes the place of dozens, and Python's global lock is free meanwhile.
"""

from typing import cast

from micronet_lm.runtime.engine import Session
from micronet_lm.runtime.native import NativeEngine, NativeSession
from micronet_lm.runtime.questions import check_whole, checked_text
from micronet_lm.runtime.screen import Screen
from micronet_lm.runtime.suggestions import Learned, Suggester, Suggestions


class NativeScreen(Screen):
    """See `runtime.screen.Screen`."""

    def next_words(self, session: Session, before: str, k: int) -> list[tuple[str, float]]:
        """Return the k likeliest words and their probabilities."""
        return cast("NativeSession", session).next_words(before, k)

    def completions(
        self, session: Session, before: str, prefix: str, k: int
    ) -> list[tuple[str, float]]:
        """Return the k likeliest words that begin with `prefix`, in small letters or capitals."""
        return cast("NativeSession", session).completions(before, prefix, k)


class NativeSuggester(Suggester):
    """See `runtime.suggestions.Suggester`; the engine indexes what a session has learned."""

    def of_text(self, text: str, k: int) -> Suggestions:
        """Return the k likeliest words for a text that is asked about once, by one call."""
        check_whole("k", k, 1)
        if not checked_text(text).isascii():  # Python and the engine may know other characters
            return super().of_text(text, k)
        found = cast("NativeEngine", self._model.engine).suggest(text, k)
        return Suggestions(*found)

    def next_words(self, session: Session, before: str, k: int, spaced: bool) -> Suggestions:
        """Return the k likeliest next words; with a capital where a sentence begins."""
        found = cast("NativeSession", session).suggest(before, "", spaced, k)
        return Suggestions(found, "")

    def completions(
        self, session: Session, before: str, typed: str, k: int, learned: Learned | None = None
    ) -> Suggestions:
        """Return the k likeliest words that begin as typed, then those that nearly do."""
        found = cast("NativeSession", session).suggest(before, typed, False, k)
        return Suggestions(found, typed)
