"""The kinds of pieces of a streaming step, each counted as one row.

Where `paper` and `challenge` differ, the code checks the rules for the departure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from micronet_lm.accounting import formulas
from micronet_lm.accounting.rows import ZERO, Label, Row
from micronet_lm.accounting.rules import FREE_BITS, Departure, Rules
from micronet_lm.accounting.target import Matrix, Rows, Target
from micronet_lm.config import FULL, Place


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Rows of one target under one set of rules."""

    target: Target
    rules: Rules

    def makes(self, departure: Departure) -> bool:
        """Return whether the rules depart from the authors' way here."""
        return departure in self.rules.departures

    def matrix(
        self,
        label: Label,
        matrix: Matrix,
        *,
        input_bits: int,
        rows: Iterable[Rows] | None = None,
        times: Fraction = Fraction(1),
        quantizer: Place | None = None,
    ) -> Row:
        """Return the row of a stored matrix times activations, with the quantizer of the result.

        `rows` replace the matrix's own where the product has other rows.
        """
        own = matrix.rows if rows is None else tuple(rows)
        product = self.product(label, own, matrix.inputs, (matrix.bits, input_bits))
        return Row(
            label=label,
            storage=self._stored(matrix) + self._quantizer(quantizer),
            multiplies=times * product.multiplies,
            adds=times * product.adds,
            plain_multiplies=times * product.plain_multiplies,
            plain_adds=times * product.plain_adds,
            bits=self._weight_bits(matrix.bits),
            size=matrix.size + matrix.bias_size,
            nonzeros=matrix.nonzeros + matrix.bias_nonzeros,
        )

    def product(
        self,
        label: Label,
        rows: Iterable[Rows],
        inputs: int,
        bits: tuple[int, int],
        quantizer: Place | None = None,
    ) -> Row:
        """Return the row of sums of products of two inputs with these bits."""
        rows = tuple(rows)
        number = formulas.multiplies(rows)
        by_rows = self.makes(Departure.ROW_SUMS)
        adds = formulas.row_adds(rows) if by_rows else formulas.density_adds(rows, inputs)
        integers = max(bits) < FULL
        return Row(
            label=label,
            storage=self._quantizer(quantizer),
            multiplies=formulas.at_bits(number, self._multiply_bits(max(bits))),
            adds=formulas.tree_adds(rows, *bits)
            if self.makes(Departure.TREE) and integers
            else adds,
            plain_multiplies=number,
            plain_adds=adds,
        )

    def scaling(self, label: Label, size: int) -> Row:
        """Return the row of multiplies of full-precision numbers."""
        number = formulas.each(size)
        bits = FREE_BITS if self.makes(Departure.FREE_MULTIPLIES) else FULL
        return Row(label=label, multiplies=formulas.at_bits(number, bits), plain_multiplies=number)

    def additions(self, label: Label, size: int) -> Row:
        """Return the row of adds of full-precision numbers."""
        number = formulas.each(size)
        return Row(label=label, adds=number, plain_adds=number)

    def others(self, label: Label, amount: Fraction, quantizer: Place | None = None) -> Row:
        """Return the row of full-precision operations, with the quantizer of their result."""
        return Row(label=label, other=amount, storage=self._quantizer(quantizer))

    def norm(self, label: Label, quantizer: Place) -> Row:
        """Return the row of a LayerNorm with its gain and bias."""
        width = self.target.shape.width
        form = formulas.whole_norm if self.makes(Departure.NORM_STEPS) else formulas.norm
        row = (
            self.values(label, 2 * width) if self.makes(Departure.NORM_VALUES) else Row(label=label)
        )
        return Row(
            label=label,
            storage=row.storage + self._quantizer(quantizer),
            other=form(width),
            bits=row.bits,
            size=row.size,
            nonzeros=row.nonzeros,
        )

    def values(self, label: Label, size: int) -> Row:
        """Return the row of stored full-precision numbers."""
        bits = FREE_BITS if self.makes(Departure.FREE_STORAGE) else FULL
        storage = formulas.plain(size, bits)
        return Row(label=label, storage=storage, bits=bits, size=size, nonzeros=size)

    def _weight_bits(self, own: int) -> int:
        """Return the bits that a weight counts in storage."""
        if self.makes(Departure.FREE_STORAGE):
            return FREE_BITS
        return own if self.makes(Departure.OWN_BITS) else self.target.bits

    def _multiply_bits(self, widest: int) -> int:
        """Return the bits that a multiply counts."""
        if self.makes(Departure.FREE_MULTIPLIES):
            return FREE_BITS
        return widest if self.makes(Departure.WIDEST) else self.target.bits

    def _stored(self, matrix: Matrix) -> Fraction:
        form = formulas.shorter if self.makes(Departure.SHORTER) else formulas.masked
        bias_bits = self._weight_bits(matrix.bias_bits)
        storage = form(matrix.size, matrix.nonzeros, self._weight_bits(matrix.bits))
        storage += form(matrix.bias_size, matrix.bias_nonzeros, bias_bits)
        if self.makes(Departure.WEIGHT_SCALES):
            storage += formulas.plain(matrix.scales, FULL)
        return storage

    def _quantizer(self, place: Place | None) -> Fraction:
        """Return the storage of one activation quantizer."""
        if place not in self.target.places:
            return ZERO
        if self.makes(Departure.WHOLE_SCALES):
            return formulas.whole_quantizer()
        return formulas.quantizer(self.target.activation_bits(place))
