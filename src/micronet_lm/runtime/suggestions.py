"""Suggestions for someone who types: whole words, and what of the text they replace."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from micronet_lm.corpus.vocabulary import EOS
from micronet_lm.corpus.words import unmark
from micronet_lm.runtime.engine import Session
from micronet_lm.runtime.typos import Beginnings

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM

ENDS = frozenset(".!?…。！？")
"""Tokens after which a sentence begins."""
ONE_ERROR, TWO_ERRORS = 3, 6
"""Letters from which a word may have errors that cost 1, and 2."""
MOST_LETTERS = 64
"""Letters up to which errors are looked for: nobody means a longer word."""
PENALTY = 0.01
"""What an error of cost 1 leaves of a suggestion's probability when it is ranked."""
BEGINNINGS = 4
"""Beginnings with errors that are looked at, the cheapest first."""


class Candidate(NamedTuple):
    """A word that may come next, and its probability."""

    word: str
    probability: float


class Suggestions(list[Candidate]):
    """The best words, and the end of the text that each of them replaces."""

    replaces: str
    """The word that is being typed, nothing where the next one begins: a picked word takes its
    place."""

    tokens: int
    """Number of tokens of the text, the word that is being typed among them."""

    def __init__(self, found: Sequence[tuple[str, float]], replaces: str, tokens: int = 0) -> None:
        super().__init__(Candidate(*pair) for pair in found)
        self.replaces, self.tokens = replaces, tokens


class Learned:
    """The words that one session has learned or recalls, indexed when they are asked for.

    A session only ever adds words, so those that were indexed stay where they are.
    """

    def __init__(self, index: Beginnings | None = None, held: int = 0) -> None:
        self._index = Beginnings([]) if index is None else index.copy()
        self._held = held  # words of the session that are indexed

    def beginnings(self, session: Session, first: int) -> Beginnings:
        """Return the index of a session's words, whose ids are `first` on."""
        while self._held < session.added:
            self._index.add(unmark(session.word(first + self._held))[1])
            self._held += 1
        return self._index


class Suggester:
    """Finds words for texts of one model."""

    def __init__(self, model: "LM") -> None:
        self._model = model

    def of_text(self, text: str, k: int) -> Suggestions:
        """Return the k likeliest words for a text that is asked about once."""
        state = self._model.start()
        state.feed(text)
        return state.suggest(k)

    def next_words(self, session: Session, before: str, k: int, spaced: bool) -> Suggestions:
        """Return the k likeliest next words; with a capital where a sentence begins."""
        screen = self._model.screen
        if not _begins_sentence(before, spaced):
            return Suggestions(screen.next_words(session, before, k), "")
        found: dict[str, float] = {}
        for word, chance in screen.next_words(session, before, 2 * k + 2):
            # A word in small letters is meant as it stands there: with a capital.
            shown = word[:1].upper() + word[1:] if word.isalpha() and word.islower() else word
            found[shown] = found.get(shown, 0.0) + chance
        return Suggestions(sorted(found.items(), key=lambda item: -item[1])[:k], "")

    def completions(
        self, session: Session, before: str, typed: str, k: int, learned: Learned | None = None
    ) -> Suggestions:
        """Return the k likeliest words that begin as typed, then those that nearly do.

        `learned` is what was indexed of this session; nothing for one that is asked once.
        """
        found = self._model.screen.completions(session, before, typed, k)
        if len(found) < k:
            known = {word for word, _ in found}
            nearly = self._nearly(session, before, typed, k, not found, learned or Learned())
            more = [pair for pair in nearly if pair[0] not in known]
            found += more[: k - len(found)]
        return Suggestions(found, typed)

    def _nearly(
        self, session: Session, before: str, typed: str, k: int, alone: bool, learned: Learned
    ) -> list[tuple[str, float]]:
        """Return likely words whose beginnings are typed with one error.

        With two, if there are none and they would be `alone`: nothing begins as typed.
        """
        if not ONE_ERROR <= len(typed) <= MOST_LETTERS or not typed.isalpha():
            return []
        near = self._near(session, typed, 1.0, learned)
        if not near and alone and len(typed) >= TWO_ERRORS:  # the longer search, only in need
            near = self._near(session, typed, 2.0, learned)
        ranked: dict[str, tuple[float, float]] = {}
        for beginning, cost in sorted(near.items(), key=lambda item: item[1])[:BEGINNINGS]:
            capital = beginning[:1].upper() + beginning[1:] if typed[:1].isupper() else beginning
            shown = capital.upper() if len(typed) > 1 and typed.isupper() else capital
            for word, chance in self._model.screen.completions(session, before, shown, k):
                rank = chance * PENALTY**cost
                if rank > ranked.get(word, (0.0, 0.0))[0]:
                    ranked[word] = rank, chance
        best = sorted(ranked.items(), key=lambda item: -item[1][0])
        return [(word, chance) for word, (_, chance) in best]

    def _near(
        self, session: Session, typed: str, limit: float, learned: Learned
    ) -> dict[str, float]:
        near = self._known.near(typed, limit)
        if session.added:
            own = learned.beginnings(session, self._model.engine.vocabulary_size)
            near |= own.near(typed, limit)
        near.pop(typed.lower(), None)  # what begins exactly so is found already
        return near

    @cached_property
    def _known(self) -> Beginnings:
        looks = self._model.screen.looks
        return Beginnings(word for word in map(looks, self._model.vocabulary) if word.isalpha())


def _begins_sentence(before: str, spaced: bool) -> bool:
    """Return whether a sentence begins after a token; after a line end only the model can tell."""
    if not before:
        return True
    return spaced and before != EOS and before[-1] in ENDS
