"""Tokens as words on a screen: which of them can be shown after a text, and how they look.

A model predicts tokens: `<unk>` for every word that it does not know, `<eos>` for a line's end, and
tokens with the mark `￭`, whose spacing differs from the usual. A person sees words. A token can be
shown after another when the two, put together to text, are read as the same two tokens: `was` and
`￭None` cannot, because `wasNone` is one word. A word's probability is the sum over the tokens that
look like it there.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from micronet_lm.corpus.tokenizers import Tokenizer
from micronet_lm.corpus.vocabulary import EOS, UNK
from micronet_lm.corpus.words import FLIP, unmark
from micronet_lm.runtime.engine import Engine, Floats, Ids, Session

Ask = Callable[[int], tuple[Ids, Floats]]
"""Return the likeliest tokens, at most this many."""


class Screen:
    """What a model's tokens look like."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer) -> None:
        self._engine = engine
        self._marks = tokenizer.name != "wikitext"
        self._join, self._tokens = tokenizer.join, tokenizer.tokens
        self.fits = lru_cache(1 << 16)(self._fits)
        """Return whether a token can be shown after another (`""`: at the beginning of a text)."""

    def looks(self, token: str) -> str:
        """Return the word that a token looks like; nothing for `<unk>`, `<eos>` and lone marks."""
        if token in {UNK, EOS}:
            return ""
        return unmark(token)[1] if self._marks else token

    def shows(self, before: str, token: str) -> bool:
        """Return whether a token can be written on a screen after another; a line end can."""
        return (token == EOS or bool(self.looks(token))) and self.fits(before, token)

    def piece(self, before: str, token: str) -> str:
        """Return what a token adds to a text that ends in another one, its space included."""
        if not before:
            return self._join([token])
        return self._join([before, token])[len(self._join([before])) :]

    def pieces(self, tokens: Sequence[str]) -> list[str]:
        """Return what each of a text's tokens adds to it; joined they are the text."""
        return [self.piece(*pair) for pair in pairwise(["", *tokens])]

    def next_words(self, session: Session, before: str, k: int) -> list[tuple[str, float]]:
        """Return the k likeliest words and their probabilities."""
        return self._best(session, before, k, [session.top_k], str)

    def completions(
        self, session: Session, before: str, prefix: str, k: int
    ) -> list[tuple[str, float]]:
        """Return the k likeliest words that begin with `prefix`, in small letters or capitals."""

        def beginning(start: str) -> Ask:
            return lambda count: session.complete(start, count)

        starts = dict.fromkeys((prefix, prefix.lower(), prefix.capitalize(), prefix.upper()))
        asks = [beginning(start) for start in starts]
        if self._marks and prefix:
            asks += [beginning(FLIP + start) for start in starts]

        def shown(word: str) -> str:
            # A token of the mark and a word is found by the mark alone, but does not look like it.
            return _in_case_of(prefix, word) if word.startswith(tuple(starts)) else ""

        return self._best(session, before, k, asks, shown)

    def _best(
        self, session: Session, before: str, k: int, asks: list[Ask], shown: Callable[[str], str]
    ) -> list[tuple[str, float]]:
        size = self._engine.vocabulary_size
        count = min(2 * k + 6, size)
        while True:
            chances: dict[str, float] = {}  # by token
            floor = 0.0  # no token that was not given is likelier
            for ask in asks:
                ids, scores = ask(count)
                given = np.exp(scores.astype(np.float64)).tolist()
                chances |= zip(map(session.word, ids.tolist()), given, strict=True)
                if len(given) == count < size:
                    floor = max(floor, given[-1])
            words: dict[str, float] = {}
            enough = 0.0  # the k-th best word so far
            for token, chance in sorted(chances.items(), key=lambda item: -item[1]):
                if _VARIANTS * chance < enough:  # no word of this token and later ones is better
                    break
                word = shown(self.looks(token))
                if word and word not in words and self.fits(before, token):
                    words[word] = self._chance(session, before, word, chances, shown)
                    if len(words) >= k:
                        enough = sorted(words.values(), reverse=True)[k - 1]
            best = sorted(words.items(), key=lambda item: -item[1])[:k]
            if not floor or (len(best) == k and best[-1][1] >= _VARIANTS * floor):
                return best
            count = min(4 * count, size)

    def _chance(
        self,
        session: Session,
        before: str,
        word: str,
        chances: dict[str, float],
        shown: Callable[[str], str],
    ) -> float:
        """Return the probability of all tokens that look like a word; some are known already."""
        total = 0.0
        for token in self.tokens_of(word):
            number = session.find(token)
            if number is None or shown(self.looks(token)) != word or not self.fits(before, token):
                continue
            known = chances.get(token)
            total += math.exp(session.log_probability(number)) if known is None else known
        return total

    def tokens_of(self, word: str) -> Iterator[str]:
        """Name the tokens that may look like a word, known or not; at most `_VARIANTS`."""
        for text in dict.fromkeys((word, word.lower())):
            # The mark itself is spelled with one mark more.
            yield FLIP * (self._marks and text == FLIP) + text
            if self._marks:
                yield FLIP + FLIP * (text == FLIP) + text

    def _fits(self, before: str, token: str) -> bool:
        if token == EOS:
            return True
        whole = [before or EOS, token]
        return self._tokens(self._join(whole))[1:] == [token]


_VARIANTS = 4


def _in_case_of(prefix: str, word: str) -> str:
    """Return a word as it is written after its beginning was typed.

    `ret` finds `Return`, and after `Ret` or `RET` the word `return` is `Return` or `RETURN`.
    """
    if word.startswith(prefix) or word != word.lower():
        return word
    if len(prefix) > 1 and prefix.isupper():
        return word.upper()
    return prefix + word[len(prefix) :]
