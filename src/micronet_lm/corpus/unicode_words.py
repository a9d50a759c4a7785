"""Version 2 of the tokenizer `word`: ordinary text of any script to words and back.

Words are those of Unicode's word boundaries (UAX #29) with these rules of our own:

- Full stops and colons do not join letters, semicolons do not join digits: `os.path` is three
  tokens. Apostrophes join letters and digits (`isn't`, `1990's`).
- A run of one punctuation character is one token (`...`, `==`).
- Characters of scripts without spaces (Han, Hiragana, Thai, Lao, Khmer, Myanmar) are words of their
  own, each with its marks; a run of Katakana is one word.
- `<unk>` is one token.

A text is read in Unicode's normal form C. White space at the ends of a line is dropped, any other
is one space. Between a token and the one before it there is a default spacing: none before closing
punctuation, after an opening bracket or beside a character of a script without spaces, otherwise
one space. A token whose real spacing differs carries the mark `￭` in front, which flips the
default, so that `join(tokens(text))` is the text itself up to normal form and white space::

    f(x) is "good", isn't it?   →   f ￭( x ) is " ￭good ￭" , isn't it ?

The character `￭` itself is spelled `￭￭`, flipped `￭￭￭`, always one character per token.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unicodedata import is_normalized, normalize

from micronet_lm.corpus.memo import Memo, shared
from micronet_lm.corpus.scripts import KATAKANA, MARKS, TIGHT, WITHOUT_SPACES
from micronet_lm.corpus.vocabulary import EOS, UNK
from micronet_lm.corpus.words import FLIP, unmark

OPENING = "([{“‘«‹¿¡"
CLOSING = ",.;:!?)]}%”»›…"

_M = f"[{MARKS}]*+"
_LETTER = f"[^\\W{WITHOUT_SPACES}{KATAKANA}]"  # digits and the underscore too
_HEBREW = "\u05d0-\u05ea"
_PUNCTUATION = f"[^\\w\\s{MARKS}]"
_WORD = "|".join(
    [
        # Letters and digits with what joins them from within.
        rf"{_LETTER}{_M}(?:{_LETTER}{_M}"
        rf"|(?<=\d)[.,٫٬](?=\d)"
        rf"|['’‘＇·\u0387\u055f\u05f4\u2027](?={_LETTER})"
        rf"|(?<=[{_HEBREW}])(?:'|\"(?=[{_HEBREW}])))*+",
        rf"(?:[{KATAKANA}]{_M})++",
        rf"[{WITHOUT_SPACES}]{_M}",
    ]
)
_ATOM = re.compile(
    rf"{UNK}|{_WORD}|{FLIP}"
    rf"|[\U0001f1e6-\U0001f1ff]{{2}}"  # a flag
    rf"|({_PUNCTUATION})\1*+{_M}(?:(?<=\u200d){_PUNCTUATION}{_M})*+"  # and emoji with joiners
    rf"|[{MARKS}]++"  # marks of nothing
)

_NEAR = 256
"""Characters from the end of a text in which its last break nearly always is."""
_TIGHT = re.compile(f"[{TIGHT}]")
_BREAK = re.compile(rf"\s|(?<=\S)(?![{MARKS}])[{WITHOUT_SPACES}]")


class _Chunk(NamedTuple):
    """The text between two white spaces."""

    tokens: list[str]
    flipped: list[str]
    """The same tokens with the first one's spacing flipped."""
    starts_tight: bool
    """Whether there is no space before it by default, whatever precedes it."""
    ends_tight: bool
    """Whether there is no space after it by default, whatever follows."""


class UnicodeWordTokenizer:
    """Words by Unicode's boundaries, numbers and runs of punctuation; see the module's text."""

    name = "word-2"

    def __init__(self) -> None:
        self._chunks = _Chunks()

    def tokens(self, text: str, after: str = "\n") -> list[str]:
        """Split text that follows the character `after`; every newline becomes `<eos>`."""
        if not is_normalized("NFC", text):
            text = normalize("NFC", text)
        tokens: list[str] = []
        chunks = self._chunks
        begins = after == "\n"
        tight = begins or _ends_tight(after)
        first_spaced = begins or text[:1].isspace()
        for number, line in enumerate(text.split("\n")):
            if number:
                tokens.append(EOS)
                begins = first_spaced = True
            for word in line.split():
                chunk = chunks[word]
                flip = not begins and (tight or chunk.starts_tight) == first_spaced
                tokens += chunk.flipped if flip else chunk.tokens
                tight = chunk.ends_tight
                begins, first_spaced = False, True
        return tokens

    def join(self, tokens: Sequence[str]) -> str:
        """Put tokens together again, with the spacing that their marks tell."""
        parts: list[str] = []
        before = "\n"
        for token in tokens:
            if token == EOS:
                parts.append("\n")
                before = "\n"
                continue
            flipped, text = unmark(token)
            if before == "\n":
                space = False
            else:
                space = (_ends_tight(before) or _starts_tight(text)) == flipped
            parts.append(" " + text if space else text)
            before = text or before
        return "".join(parts)

    def settled(self, text: str) -> int:
        """Return how much of a text has the same tokens whatever is written after it."""
        place, near = len(text), max(0, len(text) - _NEAR)
        while place > near:
            place -= 1
            if _BREAK.match(text, place):
                return place + (text[place] == "\n")  # other white space tells the next spacing
        last = -1  # a very long word: one pass over all breaks is quicker than a match per letter
        for found in _BREAK.finditer(text, 0, place):
            last = found.start()
        return last + (text[last] == "\n") if last >= 0 else 0


class _Chunks(Memo[_Chunk]):
    """Remembers the tokens of each chunk of text that was met."""

    def __missing__(self, text: str) -> _Chunk:
        tokens = shared(_tokens_of(text))
        flipped = [FLIP + tokens[0], *tokens[1:]]
        chunk = _Chunk(tokens, flipped, _starts_tight(text), _ends_tight(tokens[-1]))
        return self.remember(text, chunk, (*tokens, tokens, flipped))


def _tokens_of(text: str) -> Iterator[str]:
    """Yield the tokens of what stands between two white spaces."""
    before = ""
    for atom in _ATOM.finditer(text):
        word = atom[0]
        flip = bool(before) and not (_ends_tight(before) or _starts_tight(word))
        # The mark's own character is spelled with one mark more than its spacing needs.
        yield FLIP * flip + FLIP * (word == FLIP) + word
        before = word


def _starts_tight(text: str) -> bool:
    return text[:1] in CLOSING or _TIGHT.match(text) is not None


def _ends_tight(text: str) -> bool:
    return text[-1:] in OPENING or _TIGHT.search(text, len(text) - 1) is not None
