"""The result of a count: rows and their totals."""

from dataclasses import dataclass
from fractions import Fraction

from micronet_lm.accounting import formulas
from micronet_lm.accounting.rules import Departure, Rules
from micronet_lm.accounting.target import Target

ZERO = Fraction(0)


@dataclass(frozen=True, kw_only=True)
class Label:
    """The position of a row in tables."""

    part: str
    """`input`, `layer 3`, `bin 1` or `cache`: a line of the table by layer."""
    component: str
    """`embedding`, `attention`, `feed-forward`, `softmax` or `cache`."""
    name: str
    """Name of the row."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One piece of the model: its storage, and its operations per token."""

    label: Label
    storage: Fraction = ZERO
    """Storage in 32-bit parameters."""
    multiplies: Fraction = ZERO
    """Multiplies, weighted by their bits."""
    adds: Fraction = ZERO
    """Adds, weighted by their bits."""
    other: Fraction = ZERO
    """Full-precision operations of LayerNorm, softmax and ReLU."""
    plain_multiplies: Fraction = ZERO
    """Number of multiplies, whatever their bits."""
    plain_adds: Fraction = ZERO
    """Number of adds, whatever their bits."""
    bits: int | None = None
    """Counted bits of the weights."""
    size: int = 0
    """Number of stored values, zeros included."""
    nonzeros: int = 0
    """Number of stored values that are not zero."""

    @property
    def operations(self) -> Fraction:
        """All operations, weighted by their bits."""
        return self.multiplies + self.adds + self.other


@dataclass(frozen=True, kw_only=True)
class Account:
    """The count of one target under one set of rules."""

    target: Target
    rules: Rules
    rows: tuple[Row, ...]

    def total(self, column: str) -> Fraction:
        """Return the sum of one column of the rows."""
        return sum((getattr(row, column) for row in self.rows), ZERO)

    @property
    def storage(self) -> Fraction:
        """32-bit parameters that inference loads."""
        return self.total("storage")

    @property
    def operations(self) -> Fraction:
        """32-bit operations per token."""
        return self.total("operations")

    @property
    def score(self) -> Fraction:
        """The challenge's score."""
        return formulas.score(self.storage, self.operations)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The change made by one departure from rules `paper`."""

    departure: Departure
    storage: Fraction
    operations: Fraction
