"""The two sets of rules, and each difference between them as one named item.

Rules `paper` count as the authors' code does. Rules `challenge` count as the challenge's text
says. Between them is a list of departures, in a fixed order: each changes one thing, its amount is
the change of the totals, and all amounts add up to the whole difference.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from micronet_lm.accounting.target import Target
from micronet_lm.config import FULL
from micronet_lm.errors import UsageError


class Departure(StrEnum):
    """Names of the differences, in the order in which they are applied."""

    POSITION_HEADS = "position scores once per head"
    SOFTMAX_HEADS = "attention softmax once per head"
    QUERIES = "queries divided by √d_k"
    NORM_STEPS = "all steps of LayerNorm"
    ROW_SUMS = "adds of a sparse row by its non-zeros"
    TAIL_CHANCE = "tail bins weighted by their probability"
    CACHE_MIXING = "cache scaled, voted and mixed in"
    WIDEST = "multiplies at the widest input's bits"
    NORM_VALUES = "LayerNorm's gains and biases stored"
    CACHE_VALUES = "θ and λ stored"
    SHORTER = "no mask where dense is shorter"
    OWN_BITS = "every tensor at its own bits"
    WEIGHT_SCALES = "scales of the weights stored"
    WHOLE_SCALES = "activation scales in full"
    TREE = "option --adds tree: integer sums at their real widths"
    FREE_STORAGE = "option --freebie: values as 16-bit"
    FREE_MULTIPLIES = "option --freebie: multiplies as 16-bit"


@dataclass(frozen=True, kw_only=True)
class Reason:
    """The reason of a departure."""

    formula: str
    """Its amount, in symbols."""
    why: str
    """What the challenge's text says, and what the authors' code does."""


REASONS: dict[Departure, Reason] = {
    Departure.POSITION_HEADS: Reason(
        formula="L·(h − 1)·C·k multiplies and as many adds",
        why="every head has its own queries; the code counts one head",
    ),
    Departure.SOFTMAX_HEADS: Reason(
        formula="L·(h − 1)·(3C − 1)",
        why="every head has its own softmax; the code counts one head",
    ),
    Departure.QUERIES: Reason(
        formula="L·h·k multiplies", why="the step performs them; the code leaves them out"
    ),
    Departure.NORM_STEPS: Reason(
        formula="2L·(d + 2)",
        why="mean, variance, ε, root, gain and bias are 7d + 2 operations; the code counts 6d",
    ),
    Departure.ROW_SUMS: Reason(
        formula="Σ max(m + bias − 1, 0) instead of z·(in − 1)/in and the biases",
        why="a row of m non-zeros takes m − 1 adds; the code scales dense sums by the density",
    ),
    Departure.TAIL_CHANCE: Reason(
        formula="1 for each bin but the first",
        why="a tail word's probability is its bin's times its own, one factor for the whole bin",
    ),
    Departure.CACHE_MIXING: Reason(
        formula="d multiplies (θ), N adds (votes), 2 (λ and 1 − λ)",
        why="the code counts similarities and their softmax only",
    ),
    Departure.WIDEST: Reason(
        formula="max(b_w, b_a)/32 instead of b/32",
        why="a product with an unquantized input is a 32-bit one; the code charges all at b",
    ),
    Departure.NORM_VALUES: Reason(
        formula="4dL",
        why="they are loaded; the code takes them as fused into the next matrix",
    ),
    Departure.CACHE_VALUES: Reason(formula="2", why="they are loaded; the code leaves them out"),
    Departure.SHORTER: Reason(
        formula="min(z·b + n, n·b)/32 instead of (z·b + n)/32",
        why="only a sparse tensor has a mask; the code adds one to every tensor",
    ),
    Departure.OWN_BITS: Reason(
        formula="b of the tensor instead of b of the model",
        why="position tables, and embeddings if they stay full, are 32-bit; the code charges b",
    ),
    Departure.WEIGHT_SCALES: Reason(
        formula="1 for each scale", why="they are loaded; the code leaves them out"
    ),
    Departure.WHOLE_SCALES: Reason(
        formula="b/32 for each activation quantizer",
        why="a scale is a 32-bit number; the code counts 32 − b bits of it",
    ),
    Departure.TREE: Reason(
        formula="Σ over levels of half the terms at b_w + b_a − 2 + level bits",
        why="an accepted entry counted integer sums by the width of an adder tree",
    ),
    Departure.FREE_STORAGE: Reason(
        formula="16/32 of every value; masks stay",
        why="a model that is not quantized may count as 16-bit",
    ),
    Departure.FREE_MULTIPLIES: Reason(
        formula="16/32 of every multiply; adds and others stay",
        why="a model that is not quantized may count as 16-bit, except for its adds",
    ),
}

FREE_BITS = 16
"""Bits at which the allowance counts unquantized models."""

_OPTIONS = {Departure.TREE, Departure.FREE_STORAGE, Departure.FREE_MULTIPLIES}


@dataclass(frozen=True, kw_only=True)
class Rules:
    """A way of counting: the departures from the authors' way."""

    name: Literal["paper", "challenge"]
    departures: frozenset[Departure] = field(default_factory=frozenset)

    @property
    def options(self) -> list[str]:
        """The options in use beyond the rules' own."""
        return [own.value for own in Departure if own in self.departures & _OPTIONS]


PAPER = Rules(name="paper")
"""The rules of the authors' code."""


def challenge(*, tree: bool = False, freebie: bool = False) -> Rules:
    """Return the rules of the challenge's text, with options."""
    departures = set(Departure) - _OPTIONS
    if tree:
        departures.add(Departure.TREE)
    if freebie:
        departures |= {Departure.FREE_STORAGE, Departure.FREE_MULTIPLIES}
    return Rules(name="challenge", departures=frozenset(departures))


def choose_rules(name: str, *, adds: str = "fp32", freebie: bool = False) -> Rules:
    """Return the rules that the command line names."""
    if name == "challenge":
        return challenge(tree=adds == "tree", freebie=freebie)
    if adds == "tree" or freebie:
        word = "--adds tree" if adds == "tree" else "--freebie"
        raise UsageError(f"rules 'paper' have no {word}: choose --rules challenge")
    return PAPER


def check_rules(rules: Rules, target: Target) -> None:
    """Refuse an allowance that does not apply to the target."""
    if Departure.FREE_STORAGE in rules.departures and target.quantized:
        raise UsageError(
            f"--freebie is for models that are not quantized, but {target.name} has "
            f"{target.bits} bits: leave out --freebie, or count {FULL} bits"
        )
