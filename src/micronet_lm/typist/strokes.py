"""The arithmetic of keystroke savings: 100 · (characters − keystrokes) / characters.

A suggestion is picked for one keystroke as soon as it is right, and gives the space after it, too.
"""

from dataclasses import dataclass, field


@dataclass
class Strokes:
    """Characters of a text so far, and the keystrokes that they took."""

    characters: int = 0
    keystrokes: int = 0
    _space_given: bool = field(default=True, repr=False)

    @property
    def savings(self) -> float:
        """Keystroke savings in per cent; 0 for a text without characters."""
        saved = self.characters - self.keystrokes
        return 100 * saved / self.characters if self.characters else 0.0

    def begin_line(self) -> None:
        """Go to the beginning of a line, where no word needs a space before it."""
        self._space_given = True

    def space(self) -> None:
        """Write a space; after a picked word it is there already."""
        self.characters += 1
        self.keystrokes += not self._space_given
        self._space_given = False

    def by_hand(self, characters: int = 1) -> None:
        """Type characters for which nothing is suggested."""
        self.characters += characters
        self.keystrokes += characters
        self._space_given = False

    def word(self, length: int, typed: int | None) -> None:
        """Write a word that is suggested after so many of its letters were typed, or never."""
        self.characters += length
        self.keystrokes += length if typed is None else typed + 1
        self._space_given = typed is not None

    def leave_out(self) -> None:
        """Pass over a word that counts neither way."""
        self._space_given = False
