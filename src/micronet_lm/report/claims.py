"""The paper's claims, and whether they hold for our own numbers.

Perplexities of one recipe differ from seed to seed. The spread of the logarithm, pooled over all
rows that were trained with several seeds, is the noise of every row; a difference counts when it
exceeds two standard errors. Numbers of one training have no such noise: there a difference counts
when it is not too small to matter.
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

from micronet_lm.report.quantities import shown
from micronet_lm.report.reproduction import Cell

ASSUMED_NOISE = 0.01
"""Standard deviation of the logarithm of a perplexity, as long as no row has two seeds."""

ERRORS = 2.0
"""Standard errors that a difference must exceed."""

LEAST = 0.001
"""Smallest relative difference that counts between numbers of one training."""

LARGE = 0.05
"""A change of perplexity that would be significant: the 5 % of Rae et al.'s Hebbian softmax."""

FIGURES = "cache-figures"
"""Key of the claims about the cache figures."""

FindCell = Callable[[str, str], Cell]
"""Find a cell by row and column."""


class Verdict(StrEnum):
    """Whether a claim holds."""

    HOLDS = "holds at this scale"
    FAILS = "does not hold at this scale"
    UNTOLD = "cannot be told"
    MISSING = "not trained yet"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence, as an order of numbers."""

    text: str
    rising: tuple[tuple[str, ...], ...] = ()
    """Cells whose numbers must rise: row, column, and perhaps a column to divide by."""
    not_lower: tuple[tuple[str, ...], ...] = ()
    """Two cells, the first of which must not be clearly below the second."""
    exact: bool = False
    """Whether its numbers come from the same training, so that seeds do not matter."""
    positive: tuple[str, str] | None = None
    """A number of the cache figures that must be above zero, and its model."""
    ours: bool = False
    """Whether it is a question of our own that the paper does not ask."""

    @property
    def terms(self) -> tuple[tuple[str, ...], ...]:
        """The cells that are compared, each with the next."""
        return self.rising or self.not_lower


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A verdict with the numbers that it compares."""

    verdict: Verdict
    paper: str = ""
    """The paper's numbers in the order of the claim, with <, = or > between them."""
    ours: str = ""
    """Our own; ≈ is a difference that does not count."""


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
                not_lower=tuple(map(tuple, entry.get("not_lower", ()))),
                exact=entry.get("exact", False),
                positive=tuple(entry["positive"]) if "positive" in entry else None,
                ours=entry.get("ours", False),
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


def judged(claim: Claim, cell: FindCell, noise: float) -> Judgement:
    """Judge a claim about cells."""
    paper = _printed(claim.terms, cell)
    own = [_measured(term, cell, noise) for term in claim.terms]
    known = [number for number in own if number is not None]
    if len(known) < len(own):
        return Judgement(verdict=Verdict.MISSING, paper=paper)
    verdicts, text = [], known[0].text
    for low, high in pairwise(known):
        rise = high.log - low.log
        error = LEAST if claim.exact else ERRORS * math.sqrt(low.variance + high.variance)
        text += f" {_sign(rise, error)} {high.text}"
        verdicts.append(_verdict(rise, error, falls=bool(claim.not_lower)))
    return Judgement(verdict=_worst(verdicts), paper=paper, ours=text)


@dataclass(frozen=True, kw_only=True)
class _Number:
    """A number of a claim: a cell's, or the quotient of two."""

    text: str
    log: float
    variance: float = 0.0
    """Of the logarithm."""


def _measured(term: Sequence[str], cell: FindCell, noise: float) -> _Number | None:
    """Return our own number of a term; None before it is measured."""
    cells = [cell(term[0], column) for column in term[1:]]
    values = [own.measured for own in cells if own.measured is not None]
    if len(values) < len(cells):
        return None
    kind = term[1] if term[1] in ("lam", "theta") else "perplexity"
    text = shown(kind, values[0]) if len(values) == 1 else _change(values, 2)
    variance = sum(noise**2 / max(1, len(own.seeds)) for own in cells)
    return _Number(text=text, log=_log(values), variance=variance)


def _printed(terms: Sequence[Sequence[str]], cell: FindCell) -> str:
    """Return the paper's numbers of a claim as text; nothing where it prints none."""
    numbers = []
    for row, *columns in terms:
        texts = [own for column in columns if (own := cell(row, column).printed) is not None]
        if len(texts) < len(columns):
            return ""
        values = [float(text) for text in texts]
        text = texts[0] if len(texts) == 1 else _change(values, 1)
        numbers.append(_Number(text=text, log=_log(values)))
    if not numbers:
        return ""
    joined = numbers[0].text
    for low, high in pairwise(numbers):
        joined += f" {_sign(high.log - low.log, 0.0, equal='=')} {high.text}"
    return joined


def _log(values: Sequence[float]) -> float:
    """Return the logarithm of a number, or of the quotient of two."""
    return math.log(values[0]) - (math.log(values[1]) if len(values) > 1 else 0.0)


def _change(values: Sequence[float], digits: int) -> str:
    return f"{100 * (values[0] / values[1] - 1):+.{digits}f} %"


def _sign(rise: float, error: float, equal: str = "≈") -> str:
    return equal if abs(rise) <= error else "<" if rise > 0 else ">"


def _verdict(rise: float, error: float, *, falls: bool) -> Verdict:
    """Judge a rise from one number to the next; with `falls`, that there is no clear one."""
    if falls:
        if rise > error:
            return Verdict.FAILS
        return Verdict.HOLDS if rise + error < LARGE else Verdict.UNTOLD
    if abs(rise) <= error:
        return Verdict.UNTOLD
    return Verdict.HOLDS if rise > 0 else Verdict.FAILS


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    for worst in (Verdict.FAILS, Verdict.UNTOLD):
        if worst in verdicts:
            return worst
    return Verdict.HOLDS
