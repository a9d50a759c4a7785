"""Tokenizers by name: from text to tokens and back."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

from micronet_lm.corpus.vocabulary import EOS
from micronet_lm.corpus.words import WordTokenizer
from micronet_lm.errors import UsageError


class Tokenizer(Protocol):
    """Conversion from text to tokens and back; a newline is `<eos>`, and no token is empty."""

    @property
    def name(self) -> str:
        """The name used in recipes and corpora."""

    def tokens(self, text: str) -> list[str]:
        """Split text into tokens."""

    def join(self, tokens: Sequence[str]) -> str:
        """Join tokens to text."""


class WikiTextTokenizer:
    """Tokenizer for text that is already tokenized, such as WikiText: split at white space."""

    name = "wikitext"

    def tokens(self, text: str) -> list[str]:
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


_KNOWN: dict[str, Callable[[], Tokenizer]] = {
    "wikitext": WikiTextTokenizer,
    "word": WordTokenizer,
}

TOKENIZERS = tuple(_KNOWN)
"""The names that `tokenizer` accepts."""


@cache  # one instance each: all callers share the pieces that the tokenizer `word` remembers
def tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer of that name."""
    try:
        return _KNOWN[name]()
    except KeyError:
        raise UsageError(
            f"there is no tokenizer {name!r}: choose one of {', '.join(TOKENIZERS)}"
        ) from None
