"""Every formula of the counting: what it counts, its text, its source and its function.

Amounts are exact fractions, so that totals agree to the last digit and differences add up. A
number of b bits counts b/32 of a parameter; an operation on inputs of at most b bits counts b/32
of an operation.

Symbols: n weights, z of them not zero; b bits; d width of the model; k and v widths of a head's
keys and values; h heads; C context; L layers; N cache; m non-zeros of a row.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, ParamSpec

from micronet_lm.accounting.target import Rows
from micronet_lm.config import FULL

STORAGE_BASELINE = 159_000_000
"""32-bit parameters of the challenge's baseline."""

OPERATIONS_BASELINE = 318_000_000
"""32-bit operations per token of the challenge's baseline."""

CODE = "authors' evaluation code"
RULES = "challenge's rules"


@dataclass(frozen=True, kw_only=True)
class Formula:
    """One formula as data, with the function that computes it."""

    title: str
    """What is counted."""
    text: str
    """The formula as text."""
    source: str
    """Its source."""
    rules: Literal["paper", "challenge", "both"]
    """Which rules use it."""
    compute: Callable[..., Fraction]


FORMULAS: list[Formula] = []
"""All formulas, in reading order."""

P = ParamSpec("P")


def _formula(
    title: str, text: str, *, source: str, rules: Literal["paper", "challenge", "both"]
) -> Callable[[Callable[P, Fraction]], Callable[P, Fraction]]:
    def add(compute: Callable[P, Fraction]) -> Callable[P, Fraction]:
        FORMULAS.append(
            Formula(title=title, text=text, source=source, rules=rules, compute=compute)
        )
        return compute

    return add


# Storage, in 32-bit parameters.


@_formula("weights, masked", "(z·b + n) / 32", source=CODE, rules="paper")
def masked(size: int, nonzeros: int, bits: int) -> Fraction:
    """Count non-zero weights, and one bit of mask per weight."""
    return Fraction(nonzeros * bits + size, FULL)


@_formula("weights, the shorter form", "min(z·b + n, n·b) / 32", source=RULES, rules="challenge")
def shorter(size: int, nonzeros: int, bits: int) -> Fraction:
    """Count sparse weights with a mask, or dense ones without, whichever is less."""
    return Fraction(min(nonzeros * bits + size, size * bits), FULL)


@_formula("values as they are", "n·b / 32", source=RULES, rules="challenge")
def plain(size: int, bits: int) -> Fraction:
    """Count LayerNorm's gains and biases, θ and λ, scales and ranges."""
    return Fraction(size * bits, FULL)


@_formula("activation quantizer", "1 + (32 − b)/32", source=CODE, rules="paper")
def quantizer(bits: int) -> Fraction:
    """Count a 32-bit range, and a scale whose last b bits are zero."""
    return 1 + Fraction(FULL - bits, FULL)


@_formula("activation quantizer, scale in full", "1 + 1", source=RULES, rules="challenge")
def whole_quantizer() -> Fraction:
    """Count a 32-bit range and a 32-bit scale."""
    return Fraction(2)


# Operations per token.


@_formula("product, multiplies", "z, each b/32", source=CODE, rules="both")
def multiplies(rows: Iterable[Rows]) -> Fraction:
    """Count one per non-zero weight, whatever its bits."""
    return Fraction(sum(group.count * group.nonzeros for group in rows))


@_formula("product, adds by density", "z·(in − 1)/in, and 1 per bias", source=CODE, rules="paper")
def density_adds(rows: Iterable[Rows], inputs: int) -> Fraction:
    """Count out·(in − 1) scaled by the density, and one per bias."""
    rows = tuple(rows)
    biases = sum(group.count for group in rows if group.biased)
    return multiplies(rows) * Fraction(inputs - 1, inputs) + biases


@_formula(
    "product, adds by rows", "Σ over rows of max(m + bias − 1, 0)", source=RULES, rules="challenge"
)
def row_adds(rows: Iterable[Rows]) -> Fraction:
    """Count the adds of each row's non-zeros and its bias."""
    terms = ((group.count, group.nonzeros + group.biased) for group in rows)
    return Fraction(sum(count * max(m - 1, 0) for count, m in terms))


@_formula(
    "product, adds in a tree",
    "level l = 1, 2, …: half of the terms, each min(b_w + b_a − 2 + l, 32)/32; a bias 1",
    source="accepted precedent of the challenge, as --adds tree",
    rules="challenge",
)
def tree_adds(rows: Iterable[Rows], weight_bits: int, activation_bits: int) -> Fraction:
    """Count adds in a tree: an integer product has b_w + b_a − 1 bits, and each level adds one."""
    bits = 0
    for group in rows:
        width, terms = weight_bits + activation_bits - 1, group.nonzeros
        row = FULL if group.biased and terms else 0
        while terms > 1:
            row += terms // 2 * min(width, FULL)
            terms, width = (terms + 1) // 2, width + 1
        bits += group.count * row
    return Fraction(bits, FULL)


@_formula("LayerNorm, short", "6d", source=CODE, rules="paper")
def norm(width: int) -> Fraction:
    """Count as the authors do."""
    return Fraction(6 * width)


@_formula("LayerNorm, all steps", "7d + 2", source=RULES, rules="challenge")
def whole_norm(width: int) -> Fraction:
    """Count mean d, centring d, squares d, variance d, ε, 1/√, scaling d, gain d, bias d."""
    return Fraction(7 * width + 2)


@_formula("softmax over n", "3n − 1", source=CODE, rules="both")
def softmax(size: int) -> Fraction:
    """Count exponentials, their sum, and a division each."""
    return Fraction(3 * size - 1)


@_formula("one operation each", "n", source=CODE, rules="both")
def each(size: int) -> Fraction:
    """Count ReLU and residuals; for rules `challenge` also scalings, votes and mixing."""
    return Fraction(size)


@_formula("score", "storage / 159 M + operations / 318 M", source="section 2.1", rules="both")
def score(storage: Fraction, operations: Fraction) -> Fraction:
    """Return the challenge's score; smaller is better."""
    return storage / STORAGE_BASELINE + operations / OPERATIONS_BASELINE


def at_bits(amount: Fraction, bits: int) -> Fraction:
    """Return the count of operations on inputs of at most this many bits."""
    return amount * Fraction(bits, FULL)
