"""What a count gives: rows, and their totals."""

from dataclasses import dataclass
from fractions import Fraction

from micronet_lm.accounting import formulas
from micronet_lm.accounting.rules import Departure, Rules
from micronet_lm.accounting.target import Target

ZERO = Fraction(0)


@dataclass(frozen=True, kw_only=True)
class Label:
    """Where a row belongs."""

    part: str
    """`input`, `layer 3`, `bin 1` or `cache`: a line of the table by layer."""
    component: str
    """`embedding`, `attention`, `feed-forward`, `softmax` or `cache`."""
    name: str
    """What it is."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One piece of the model: what it stores, and what a token costs there."""

    label: Label
    storage: Fraction = ZERO
    """In 32-bit parameters."""
    multiplies: Fraction = ZERO
    """At their bits."""
    adds: Fraction = ZERO
    """At their bits."""
    other: Fraction = ZERO
    """Full-precision operations of LayerNorm, softmax and ReLU."""
    plain_multiplies: Fraction = ZERO
    """Their number, whatever their bits."""
    plain_adds: Fraction = ZERO
    """Their number, whatever their bits."""
    bits: int | None = None
    """Of the weights, as they are counted."""
    size: int = 0
    """Stored values, zeros included."""
    nonzeros: int = 0
    """Stored values that are not zero."""

    @property
    def operations(self) -> Fraction:
        """All operations, at their bits."""
        return self.multiplies + self.adds + self.other


@dataclass(frozen=True, kw_only=True)
class Account:
    """The count of one target under one set of rules."""

    target: Target
    rules: Rules
    rows: tuple[Row, ...]

    def total(self, column: str) -> Fraction:
        """Sum up one column of the rows."""
        return sum((getattr(row, column) for row in self.rows), ZERO)

    @property
    def storage(self) -> Fraction:
        """32-bit parameters that inference loads."""
        return self.total("storage")

    @property
    def operations(self) -> Fraction:
        """32-bit operations a token."""
        return self.total("operations")

    @property
    def score(self) -> Fraction:
        """The challenge's score."""
        return formulas.score(self.storage, self.operations)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What one departure from rules `paper` changes."""

    departure: Departure
    storage: Fraction
    operations: Fraction
