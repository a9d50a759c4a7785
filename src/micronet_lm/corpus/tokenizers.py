"""How text becomes tokens and tokens become text again, by name."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

from micronet_lm.corpus.vocabulary import EOS
from micronet_lm.corpus.words import WordTokenizer
from micronet_lm.errors import UsageError


class Tokenizer(Protocol):
    """Turns text into tokens and back; a newline is the token `<eos>`, no token is empty."""

    @property
    def name(self) -> str:
        """The name by which configurations and corpora know it."""

    def tokens(self, text: str) -> list[str]:
        """Split text into tokens."""

    def join(self, tokens: Sequence[str]) -> str:
        """Put tokens together to text."""


class WikiTextTokenizer:
    """For text that is tokens already, as WikiText is: split at white space."""

    name = "wikitext"

    def tokens(self, text: str) -> list[str]:
        """Split at white space; every newline becomes `<eos>`."""
        return text.replace("\n", f" {EOS} ").split()

    def join(self, tokens: Sequence[str]) -> str:
        """Put a space between words and a newline for each `<eos>`."""
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
"""The names that `tokenizer` knows."""


@cache  # one of each: the pieces that the tokenizer `word` remembers serve every caller
def tokenizer(name: str) -> Tokenizer:
    """Give the tokenizer of that name."""
    try:
        return _KNOWN[name]()
    except KeyError:
        raise UsageError(
            f"there is no tokenizer {name!r}: choose one of {', '.join(TOKENIZERS)}"
        ) from None
