"""A text that arrives in pieces, cut anywhere: its tokens, as soon as nothing can change them."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from micronet_lm.corpus.blocks import clean
from micronet_lm.corpus.tokenizers import Tokenizer
from micronet_lm.corpus.vocabulary import EOS
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.questions import checked_text
from micronet_lm.strict_json import parse_json

_LEADING = re.compile("(?:[^\\S\n\r]|\N{ZERO WIDTH NO-BREAK SPACE})*")
"""White space before a text, and the byte order mark that some programs put in front."""


@dataclass
class Place:
    """The position of a reader in a text."""

    pending: str = ""
    """Text whose tokens may still change, such as a word that has no end yet."""
    last: str = ""
    """The last token that is settled; nothing where the text has none."""
    begins: bool = True
    """Whether only white space was read so far."""
    boundary: bool = False
    """Whether a word begins next, whatever the spacing: words were read, not text."""

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Place":
        """Read what `to_json` gave."""
        try:
            place = cls(**parse_json(text, "it"))
        except (TypeError, ValueError):
            raise InferenceError("the saved state is damaged: save it again") from None
        if [*map(type, asdict(place).values())] != [str, str, bool, bool]:
            raise InferenceError("the saved state is damaged: save it again")
        return place


class Reader:
    """Cuts a text into tokens, however it was cut into pieces."""

    def __init__(self, tokenizer: Tokenizer, place: Place | None = None) -> None:
        self._tokenizer = tokenizer
        self.place = place or Place()

    def take(self, piece: str) -> list[str]:
        """Read a piece; return the tokens that are settled with it."""
        checked_text(piece)
        place = self.place
        if place.boundary and piece:
            place.boundary = False
            if not piece[0].isspace() and self._spaced_by_default(piece):
                piece = " " + piece
        place.pending += piece
        if place.begins:
            place.pending = place.pending[_LEADING.match(place.pending).end() :]  # type: ignore[union-attr]  # it matches anything
            place.begins = not place.pending
        cut = self._tokenizer.settled(place.pending)
        if place.pending[cut - 1 : cut] == "\r" and cut == len(place.pending):
            cut -= 1  # it may be half of a line end
        return self._settle(cut)

    def open(self) -> list[str]:
        """Return the tokens of what is pending, as if the text ended here."""
        return self._tokenizer.tokens(clean(self.place.pending), self._after)

    def close(self) -> list[str]:
        """Read pending text to its end; return its tokens."""
        return self._settle(len(self.place.pending))

    def take_words(self, words: Sequence[str]) -> None:
        """Note that words were read after everything that is settled."""
        if words:
            self.place.last, self.place.begins, self.place.boundary = words[-1], False, True

    @property
    def ends_in_space(self) -> bool:
        """Whether the text ends in a space or a tab: the next word needs none."""
        return self.place.pending[-1:].isspace()

    def fork(self) -> "Reader":
        """Return a second reader at the same place."""
        return Reader(self._tokenizer, Place(**asdict(self.place)))

    @property
    def _after(self) -> str:
        """The character that what is pending follows."""
        last = self.place.last
        return self._tokenizer.join([last])[-1:] or "\n" if last else "\n"

    def _settle(self, cut: int) -> list[str]:
        head = clean(self.place.pending[:cut])
        tokens = self._tokenizer.tokens(head, self._after)
        self.place.pending = self.place.pending[cut:]
        if tokens:
            self.place.last = tokens[-1]
        return tokens

    def _spaced_by_default(self, piece: str) -> bool:
        first = self._tokenizer.tokens(piece)[:1]
        last = self.place.last
        if not first or last == EOS:
            return False
        whole, part = self._tokenizer.join([last, *first]), self._tokenizer.join([last])
        return whole[len(part) : len(part) + 1] == " "
