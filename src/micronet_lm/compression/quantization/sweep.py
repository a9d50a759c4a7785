"""Compare many widths: the cost of each, and its effect on the predictions.

Every point is a run folder, with its numbers in that folder's `point.json`. A point whose file
belongs to the same model, recipe, labels and measurement is not computed again, so a stopped sweep
resumes, and another call adds other widths or methods: the table has all points of the folder that
belong to the same model and measurement, whichever call made them.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from micronet_lm.accounting import challenge, count, examine
from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.compression.divergence import mean_divergence
from micronet_lm.compression.quantization.run import check_quantizable, quantize, quantized_recipe
from micronet_lm.compression.softlabels import SoftLabels
from micronet_lm.compression.sources import file_fingerprint, inputs_of
from micronet_lm.config import Recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import UsageError
from micronet_lm.files import make_folder, read_json, write_text
from micronet_lm.training import Run, evaluate, perplexity

METHODS: Mapping[str, Mapping[str, Any]] = {
    "calibrated": {"quantize.steps": 0, "quantize.learned": False},
    "fitted": {"quantize.steps": 0, "quantize.learned": True},
    "trained": {"quantize.learned": False},
    "learned": {"quantize.learned": True},
}
"""Ranges; ranges of the least squared error; quantization-aware training; learned scales."""

PLAIN = "unquantized"
"""Method of the model that all points are compared with."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One line of the table."""

    method: str
    """A key of `METHODS`, or `unquantized`."""
    bits: int
    """Bits of weights and activations (`quantize.bits`)."""
    steps: int
    """Steps of quantization-aware training."""
    storage: float
    """32-bit parameters, by the rules `challenge`."""
    operations: float
    """32-bit operations per token, by the same rules."""
    score: float
    """The challenge's score of both."""
    perplexity: float
    """Perplexity of the whole validation split."""
    divergence: float
    """Mean KL divergence from the unquantized model, in nats per token."""
    seconds: float
    """Time, all measurements included."""


@dataclass(frozen=True, kw_only=True)
class Menu:
    """The points to measure."""

    bits: Sequence[int]
    methods: Sequence[str]
    tokens: int
    """Number of first validation tokens for the divergence."""
    changes: Mapping[str, Any]
    """Further keys of the recipe, the same for all points."""

    def __post_init__(self) -> None:
        for option, values in (("--sweep", self.bits), ("--methods", self.methods)):
            if len(set(values)) < len(values):
                raise UsageError(
                    f"{option} must be distinct, got {','.join(map(str, values))}: give each once"
                )


@dataclass(frozen=True, kw_only=True)
class Swept:
    """The result of a call of `sweep`."""

    points: Sequence[Measured]
    """The whole table, the unquantized model first."""
    finished: bool
    """Whether all points are measured; False after an interruption."""


@dataclass(frozen=True, kw_only=True)
class _Planned:
    """One point before it is measured."""

    run: Run
    method: str
    recipe: Recipe
    labels: SoftLabels | None
    mark: Mapping[str, Any]
    """The origin that its `point.json` must have."""

    @property
    def file(self) -> Path:
        return self.run.path / "point.json"


def sweep(
    out: Path,
    source: Run,
    corpus: Corpus,
    menu: Menu,
    *,
    labels: SoftLabels | None = None,
    tell: Callable[[Measured], None] = lambda _: None,
) -> Swept:
    """Quantize to every width by every method; write `sweep.json` and `sweep.md` after each point.

    Impossible points are refused before the first is computed. An interrupted training ends the
    sweep, which returns the points so far.
    """
    origin = {"source": file_fingerprint(source.best), "tokens": menu.tokens}
    plan = _plan(out, source, corpus, menu, origin, labels)
    base = _known(out / f"{PLAIN}.json", origin)
    if base is None:
        begin = time.perf_counter()
        loss = evaluate(source.model(), corpus.split("valid")).loss
        base = _measured(source, source.recipe(), corpus, PLAIN, loss, 0.0, begin)
        _note(out / f"{PLAIN}.json", origin, base)
    tell(base)
    for planned in plan:
        run, point = planned.run, _known(planned.file, planned.mark)
        if point is None:
            begin = time.perf_counter()
            planned.file.unlink(missing_ok=True)  # that of a run that is replaced or measured again
            outcome = quantize(run, planned.recipe, corpus, source=source, labels=planned.labels)
            if not outcome.finished:
                return Swept(points=[base, *_gathered(out, origin, plan)], finished=False)
            ids = corpus.split("valid")[: menu.tokens + 1]
            divergence = mean_divergence(source.model(), run.model(), ids)
            point = _measured(
                run, planned.recipe, corpus, planned.method, outcome.best_loss, divergence, begin
            )
            _note(planned.file, planned.mark, point)
        tell(point)
        points = [base, *_gathered(out, origin, plan)]
        write_text(out / "sweep.json", json.dumps(as_json(source, menu, points)) + "\n")
        write_text(out / "sweep.md", table(menu, points))
    return Swept(points=[base, *_gathered(out, origin, plan)], finished=True)


def _plan(
    out: Path,
    source: Run,
    corpus: Corpus,
    menu: Menu,
    origin: Mapping[str, Any],
    labels: SoftLabels | None,
) -> list[_Planned]:
    """Make and check every point's recipe and folder, before hours are spent on the first."""
    training = [method for method in menu.methods if "quantize.steps" not in METHODS[method]]
    if labels is not None and not training:
        raise UsageError(
            f"--methods {','.join(menu.methods)} train nothing, so there is nothing to distil: "
            "leave out --labels, or add trained or learned"
        )
    recipe, plan = source.recipe(), []
    for method in menu.methods:
        for bits in menu.bits:
            changes = {**menu.changes, **METHODS[method], "quantize.bits": bits}
            taught = labels if method in training else None
            if method not in training:  # keys of distillation are for the other methods
                changes = {k: v for k, v in changes.items() if not k.startswith("distill.")}
            own = quantized_recipe(recipe, changes, distilled=taught is not None)
            if method in training and own.quantize is not None and own.quantize.steps == 0:
                raise UsageError(
                    f"--methods {method} with 0 steps trains nothing: choose --steps 1 or more, or "
                    "the methods calibrated and fitted"
                )
            mark = {**origin, "recipe": own.model_dump(mode="json")}
            if taught is not None:
                mark["labels"] = taught.fingerprint
            run = Run(out / f"{method}-{bits}")
            plan.append(_Planned(run=run, method=method, recipe=own, labels=taught, mark=mark))
    for planned in plan:
        check_quantizable(planned.recipe, corpus, planned.labels)
    make_folder(out)
    for planned in plan:
        if _known(planned.file, planned.mark) is None:
            if planned.method in training:
                planned.run.check(planned.recipe, corpus, inputs_of(source, planned.labels))
            else:
                planned.run.check_place(source)
    return plan


def _gathered(out: Path, origin: Mapping[str, Any], plan: Sequence[_Planned]) -> list[Measured]:
    """Read every point of the folder with this origin, also those of earlier calls."""
    wanted = {planned.file: planned.mark for planned in plan}
    found = []
    for file in out.glob("*/point.json"):
        point = _known(file, wanted.get(file, origin), exactly=file in wanted)
        if point is not None and point.method in METHODS:
            found.append(point)
    order = list(METHODS)
    return sorted(found, key=lambda point: (order.index(point.method), -point.bits))


def as_json(source: Run, menu: Menu, points: Sequence[Measured]) -> dict[str, Any]:
    """Return the whole table as plain values."""
    return {
        "run": str(source.path),
        "divergence_tokens": menu.tokens,
        "rules": "challenge",
        "points": [asdict(point) for point in points],
    }


def table(menu: Menu, points: Sequence[Measured]) -> str:
    """Return the table as Markdown."""
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


def _known(file: Path, mark: Mapping[str, Any], *, exactly: bool = True) -> Measured | None:
    """Read an earlier point, or return None if it has another origin.

    Its origin must equal `mark`, or include it if not `exactly`.
    """
    try:
        tree = read_json(file)
        own = tree["of"] if exactly else {key: tree["of"][key] for key in mark}
        return Measured(**tree["measured"]) if own == mark else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _note(file: Path, mark: Mapping[str, Any], point: Measured) -> None:
    write_text(file, json.dumps({"of": mark, "measured": asdict(point)}) + "\n")
