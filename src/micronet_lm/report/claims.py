"""The paper's claims, and whether they hold for our own numbers.

Perplexities of one recipe differ from seed to seed. The spread of the logarithm, pooled over all
rows that were trained with several seeds, is the noise of every row; a difference counts when it
exceeds two standard errors.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from itertools import pairwise
from statistics import fmean
from typing import Any

import yaml

from micronet_lm.report.effect_stage import claimed
from micronet_lm.report.reproduction import Cell

ASSUMED_NOISE = 0.01
"""Standard deviation of the logarithm of a perplexity, as long as no row has two seeds."""

FIGURES = "cache-figures"
"""Key of the claims about the cache figures."""


class Verdict(StrEnum):
    """Whether a claim holds."""

    HOLDS = "holds at this scale"
    FAILS = "does not hold at this scale"
    UNTOLD = "cannot be told"
    MISSING = "not trained yet"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of the paper, as an order of numbers."""

    text: str
    rising: tuple[tuple[str, ...], ...] = ()
    """Cells whose numbers must rise: row, column, and perhaps a column to divide by."""
    same: tuple[tuple[str, ...], ...] = ()
    """Two cells that must not differ by more than the noise."""
    exact: bool = False
    """Whether its numbers come from the same training, so that seeds do not matter."""
    positive: tuple[str, str] | None = None
    """A number of the cache figures that must be above zero, and its model."""


@cache
def load_claims() -> dict[str, list[Claim]]:
    """Return the claims of every table."""
    file = resources.files("micronet_lm") / "report" / "claims.yaml"
    tree: Mapping[str, list[dict[str, Any]]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {
        name: [
            Claim(
                text=entry["claim"],
                rising=tuple(map(tuple, entry.get("rising", ()))),
                same=tuple(map(tuple, entry.get("same", ()))),
                exact=entry.get("exact", False),
                positive=tuple(entry["positive"]) if "positive" in entry else None,
            )
            for entry in entries
        ]
        for name, entries in tree.items()
    }


def pooled_noise(cells: Sequence[Cell]) -> float | None:
    """Return the spread of the logarithms of perplexities over seeds; None without seeds."""
    squares, freedom = 0.0, 0
    for cell in cells:
        logs = [math.log(value) for value in cell.seeds]
        if len(logs) > 1:
            squares += sum((log - fmean(logs)) ** 2 for log in logs)
            freedom += len(logs) - 1
    return math.sqrt(squares / freedom) if freedom else None


def judged(claim: Claim, cell: Callable[[str, str], Cell], noise: float) -> Verdict:
    """Return whether a claim about cells, which `cell` finds by row and column, holds."""
    terms = claim.rising or claim.same
    found = [_term(term, cell, 0.0 if claim.exact else noise) for term in terms]
    known = [own for own in found if own is not None]
    if len(known) < len(found):
        return Verdict.MISSING
    verdicts = [_compared(low, high, same=bool(claim.same)) for low, high in pairwise(known)]
    for worst in (Verdict.FAILS, Verdict.UNTOLD):
        if worst in verdicts:
            return worst
    return Verdict.HOLDS


def judged_figure(claim: Claim, sums: Mapping[str, Mapping[str, float]] | None) -> Verdict:
    """Return whether a claim about the cache figures holds."""
    if sums is None or claim.positive is None:
        return Verdict.MISSING
    quantity, model = claim.positive
    return Verdict.HOLDS if claimed(sums[model], quantity) > 0 else Verdict.FAILS


def _term(
    term: Sequence[str], cell: Callable[[str, str], Cell], noise: float
) -> tuple[float, float] | None:
    """Return the logarithm of a cell's number, or of a quotient, and its variance."""
    row, *columns = term
    log, variance = 0.0, 0.0
    for column, sign in zip(columns, (1, -1), strict=False):
        own = cell(row, column)
        if own.measured is None:
            return None
        log += sign * math.log(own.measured)
        variance += noise**2 / max(1, len(own.seeds))
    return log, variance


def _compared(low: tuple[float, float], high: tuple[float, float], *, same: bool) -> Verdict:
    rise, error = high[0] - low[0], 2 * math.sqrt(low[1] + high[1])
    if same:
        return Verdict.HOLDS if abs(rise) <= error else Verdict.FAILS
    if abs(rise) <= error:
        return Verdict.UNTOLD
    return Verdict.HOLDS if rise > 0 else Verdict.FAILS
