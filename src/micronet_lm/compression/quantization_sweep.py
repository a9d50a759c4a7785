"""A menu of widths: what each costs, and what it does to the predictions.

Every point is a run folder of its own, and its numbers are in that folder's `point.json`. A point
whose file belongs to the same model, recipe and measurement is not done again, so a sweep that was
stopped goes on, and another width or method is added by calling it again.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from micronet_lm.accounting import challenge, count, examine
from micronet_lm.accounting.runs import counted_shares
from micronet_lm.compression.divergence import mean_divergence
from micronet_lm.compression.quantized_run import quantize, quantized_recipe
from micronet_lm.compression.softlabels import SoftLabels
from micronet_lm.compression.sources import file_fingerprint
from micronet_lm.config import Recipe
from micronet_lm.corpus import Corpus
from micronet_lm.files import write_text
from micronet_lm.training import Run, evaluate, perplexity

METHODS: Mapping[str, Mapping[str, Any]] = {
    "calibrated": {"quantize.steps": 0, "quantize.learned": False},
    "fitted": {"quantize.steps": 0, "quantize.learned": True},
    "trained": {"quantize.learned": False},
    "learned": {"quantize.learned": True},
}
"""Ranges only; ranges of the least squared error; quantization-aware training; learned steps."""

PLAIN = "unquantized"
"""The method of the model that everything is compared with."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One line of the table."""

    method: str
    """A key of `METHODS`, or `unquantized`."""
    bits: int
    """Of weights and activations, as `quantize.bits` has it."""
    steps: int
    """Of quantization-aware training."""
    storage: float
    """In 32-bit parameters, by the rules `challenge`."""
    operations: float
    """32-bit operations a token, by the same rules."""
    score: float
    """The challenge's score of both."""
    perplexity: float
    """On the whole validation split."""
    divergence: float
    """Mean KL divergence from the unquantized model, in nats a token."""
    seconds: float
    """That it took, all measurements included."""


@dataclass(frozen=True, kw_only=True)
class Menu:
    """What is to be measured."""

    bits: Sequence[int]
    methods: Sequence[str]
    tokens: int
    """First tokens of the validation split that the divergence is measured on."""
    changes: Mapping[str, Any]
    """Further keys of the recipe, the same for all points."""


def sweep(
    out: Path,
    source: Run,
    corpus: Corpus,
    menu: Menu,
    *,
    labels: SoftLabels | None = None,
    tell: Callable[[Measured], None] = lambda _: None,
) -> list[Measured]:
    """Quantize to every width by every method; write `sweep.json` and `sweep.md` as they come.

    An interrupted training ends the sweep; what is there is returned.
    """
    recipe = source.recipe()
    origin = {"source": file_fingerprint(source.best), "tokens": menu.tokens}
    known = _known(out / f"{PLAIN}.json", origin)
    if known is None:
        begin = time.perf_counter()
        loss = evaluate(source.model(), corpus.split("valid")).loss
        known = _measured(source, recipe, corpus, PLAIN, loss, 0.0, begin)
        _note(out / f"{PLAIN}.json", origin, known)
    tell(known)
    points = [known]
    for method in menu.methods:
        for bits in menu.bits:
            run = Run(out / f"{method}-{bits}")
            changes = {**menu.changes, **METHODS[method], "quantize.bits": bits}
            own = quantized_recipe(recipe, changes, distilled=labels is not None)
            mark = {**origin, "recipe": own.model_dump(mode="json")}
            point = _known(run.path / "point.json", mark)
            if point is None:
                begin = time.perf_counter()
                outcome = quantize(run, own, corpus, source=source, labels=labels)
                if not outcome.finished:
                    return points
                ids = corpus.split("valid")[: menu.tokens + 1]
                divergence = mean_divergence(source.model(), run.model(), ids)
                point = _measured(run, own, corpus, method, outcome.best_loss, divergence, begin)
                _note(run.path / "point.json", mark, point)
            tell(point)
            points.append(point)
            write_text(out / "sweep.json", json.dumps(as_json(source, menu, points)) + "\n")
            write_text(out / "sweep.md", table(menu, points))
    return points


def as_json(source: Run, menu: Menu, points: Sequence[Measured]) -> dict[str, Any]:
    """Return the whole table as plain values."""
    return {
        "run": str(source.path),
        "divergence_tokens": menu.tokens,
        "rules": "challenge",
        "points": [asdict(point) for point in points],
    }


def table(menu: Menu, points: Sequence[Measured]) -> str:
    """Write the table as Markdown."""
    base = points[0]
    lines = [
        "| method | bits | steps | storage | operations | score | validation perplexity | rise "
        f"| KL on {menu.tokens:,} tokens |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for p in points:
        rise = "" if p is base else f"{p.perplexity / base.perplexity - 1:+.2%}"
        divergence = "" if p is base else f"{p.divergence:.5f}"
        lines.append(
            f"| {p.method} | {p.bits} | {p.steps:,} | {p.storage:,.0f} | {p.operations:,.0f} "
            f"| {p.score:.6f} | {p.perplexity:,.2f} | {rise} | {divergence} |"
        )
    return "\n".join(lines) + "\n"


def _measured(
    run: Run,
    recipe: Recipe,
    corpus: Corpus,
    method: str,
    loss: float,
    divergence: float,
    begin: float,
) -> Measured:
    shares = counted_shares(corpus.split("test"), recipe.model)
    account = count(examine(run.path, recipe, shares), challenge())
    config = recipe.quantize
    return Measured(
        method=method,
        bits=config.bits if config else 32,
        steps=config.steps if config else 0,
        storage=float(account.storage),
        operations=float(account.operations),
        score=float(account.score),
        perplexity=perplexity(loss),
        divergence=divergence,
        seconds=time.perf_counter() - begin,
    )


def _known(file: Path, mark: Mapping[str, Any]) -> Measured | None:
    """Read a point that was measured before, unless it was of something else."""
    try:
        tree = json.loads(file.read_text("utf-8"))
        return Measured(**tree["measured"]) if tree["of"] == mark else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _note(file: Path, mark: Mapping[str, Any], point: Measured) -> None:
    write_text(file, json.dumps({"of": mark, "measured": asdict(point)}) + "\n")
