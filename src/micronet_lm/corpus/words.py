"""Version 1 of the tokenizer `word`: ordinary text to words and back, without losing a space.

Between a token and the one before it there is a default spacing: none at the start of a line,
none before closing punctuation, none after an opening bracket, otherwise one space. A token
whose real spacing differs carries the mark `￭` in front, which flips the default, so that
`join(tokens(text)) == text` for every text whose white space is single spaces and newlines
(any other white space is restored as one space)::

    f(x) is "good", isn't it?   →   f ￭( x ) is " ￭good ￭" , isn't it ?

A space that no word follows (at the end of a line) is the mark `￭` alone. The character `￭`
itself is written `￭￭`, flipped `￭￭￭`, always one character per token.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from micronet_lm.corpus.memo import Memo, shared
from micronet_lm.corpus.vocabulary import EOS

FLIP = "\N{HALFWIDTH BLACK SQUARE}"
OPENING = "([{"
CLOSING = ",.;:!?)]}%"

_WORD = r"\d+(?:[.,]\d+)*(?!\w)|\w+(?:['’]\w+)*"

# One piece of text: openings and line ends, then one word or one run of punctuation. A piece
# includes everything that changes the default spacing of what follows, so the tokens of a piece
# depend on the piece alone and can be remembered.
_OPEN = re.escape(OPENING)
_PIECE = re.compile(
    r" ?[A-Za-z]\w*+(?:['’]\w+)*+|"  # the common case first: nine pieces in ten
    rf"[\s{_OPEN}]*+(?:{_WORD}|[^\w\s{_OPEN}]++)?+"
)
# The same text atom by atom: a line end, or optional white space and one token's characters.
_ATOM = re.compile(rf"\n|([^\S\n]*)({_WORD}|{FLIP}|([^\w\s])\3*+|(?=\n|\Z))")

# Where what follows no longer changes what came before, nor the default spacing of what follows.
_SETTLED = re.compile(r"\n|\w(?=[^\S\n])")


class WordTokenizer:
    """Reversible tokenizer of words, numbers and runs of punctuation; see the module docstring."""

    name = "word"

    def __init__(self) -> None:
        self._pieces = _Pieces()

    def tokens(self, text: str, after: str = "\n") -> list[str]:
        """Split text that follows the character `after`; every newline becomes `<eos>`."""
        # What comes before is split as well, and its one token dropped again.
        pieces = _PIECE.findall(after + text)
        tokens = list(chain.from_iterable(map(self._pieces.__getitem__, pieces)))
        del tokens[0]
        return tokens

    def join(self, tokens: Sequence[str]) -> str:
        """Join tokens to text, with the spacing that their marks give."""
        parts: list[str] = []
        before = "\n"
        for token in tokens:
            if token == EOS:
                parts.append("\n")
                before = "\n"
                continue
            flipped, text = unmark(token)
            if _space_by_default(before, text) != flipped:
                parts.append(" ")
                before = " "
            if text:
                parts.append(text)
                before = text
        return "".join(parts)

    def settled(self, text: str) -> int:
        """Return how much of a text has the same tokens whatever is written after it."""
        return max((match.end() for match in _SETTLED.finditer(text)), default=0)


class _Pieces(Memo[tuple[str, ...]]):
    """Memo of the tokens of each piece of text seen so far."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        tokens = tuple(shared(_tokens_of(piece)))
        return self.remember(piece, tokens, tokens)


def _tokens_of(piece: str) -> Iterator[str]:
    before = "x"  # any word: a piece that follows a line end or an opening contains it
    for atom in _ATOM.finditer(piece):
        if atom[0] == "\n":
            yield EOS
            before = "\n"
            continue
        space, text = bool(atom[1]), atom[2]
        flip = space != _space_by_default(before, text)
        if text:
            # The mark's own character gets one mark more than its spacing needs.
            yield FLIP * flip + FLIP * (text == FLIP) + text
            before = text
        elif flip:
            yield FLIP


def _space_by_default(before: str, text: str) -> bool:
    """Return whether a space separates two tokens without marks."""
    if not text or before == "\n" or before[-1] in OPENING:
        return False
    return text[0] not in CLOSING


def unmark(token: str) -> tuple[bool, str]:
    """Return whether a token's spacing is flipped, and its text."""
    if not token.startswith(FLIP):
        return False, token
    if token == FLIP:
        return True, ""
    if token == FLIP * 2:
        return False, FLIP
    return True, token.removeprefix(FLIP) if token != FLIP * 3 else FLIP
