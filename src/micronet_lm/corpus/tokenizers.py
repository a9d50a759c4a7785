"""Tokenizers by name: from text to tokens and back."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

from micronet_lm.corpus.unicode_words import UnicodeWordTokenizer
from micronet_lm.corpus.vocabulary import EOS
from micronet_lm.corpus.words import WordTokenizer
from micronet_lm.errors import UsageError


class Tokenizer(Protocol):
    """Conversion from text to tokens and back; a newline is the token `<eos>`.

    No token is empty or holds white space, the lines of a text are split independently, and
    `join(a + b)` begins with `join(a)`.
    """

    @property
    def name(self) -> str:
        """The name by which corpora and packed files know it, its version included."""

    def tokens(self, text: str, after: str = "\n") -> list[str]:
        """Split text that follows the character `after`: a newline, or another that is no space."""

    def join(self, tokens: Sequence[str]) -> str:
        """Join tokens to text."""

    def settled(self, text: str) -> int:
        """Return how much of a text has the same tokens whatever is written after it."""


class WikiTextTokenizer:
    """Tokenizer for text that is already tokenized, such as WikiText: split at white space."""

    name = "wikitext"

    def tokens(self, text: str, after: str = "\n") -> list[str]:
        """Split at white space; every newline becomes `<eos>`."""
        return text.replace("\n", f" {EOS} ").split()

    def join(self, tokens: Sequence[str]) -> str:
        """Join words with spaces, and write a newline for each `<eos>`."""
        lines: list[list[str]] = [[]]
        for token in tokens:
            if token == EOS:
                lines.append([])
            else:
                lines[-1].append(token)
        return "\n".join(map(" ".join, lines))

    def settled(self, text: str) -> int:
        """Return where the last word begins: it may be written on."""
        return max((place for place, sign in enumerate(text, 1) if sign.isspace()), default=0)


_KNOWN: dict[str, Callable[[], Tokenizer]] = {
    "wikitext": WikiTextTokenizer,
    "word": WordTokenizer,  # version 1: corpora and models made with it keep working
    "word-2": UnicodeWordTokenizer,
}

TOKENIZERS = tuple(_KNOWN)
"""The names in corpora and packed files: each is one version of a tokenizer, for good."""

NEWEST = {"wikitext": "wikitext", "word": "word-2", "word-2": "word-2"}
"""The names in recipes and options, with the version that a new corpus is built with.

A recipe says `word`; the recipe that a run writes down says which version that was."""


@cache  # one of each: the text that the tokenizer `word` remembers serves every caller
def tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer of a name in a corpus or packed file."""
    return _KNOWN[name]()


def newest_tokenizer(name: str) -> Tokenizer:
    """Return the newest version of the tokenizer that a user chose."""
    try:
        return tokenizer(NEWEST[name])
    except KeyError:
        raise UsageError(
            f"there is no tokenizer {name!r}: choose one of {', '.join(NEWEST)}"
        ) from None
