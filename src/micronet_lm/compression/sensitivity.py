"""Sensitivity analysis: the perplexity when only one matrix is pruned (section 4.2).

Every matrix is pruned by magnitude over a grid of sparsities, all others unchanged, and the model
is evaluated on a part of the validation split. Points are written at once, one JSON object per
line, so that a killed analysis resumes; under `torchrun` the processes share the points.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from micronet_lm.compression.allocation import Curve
from micronet_lm.compression.magnitude import Ranking, prunable
from micronet_lm.errors import RunError
from micronet_lm.files import (
    LARGEST_RECORD,
    open_own,
    read_json,
    read_json_lines,
    read_small,
    refusing_damage,
    write_text,
)
from micronet_lm.layout import Phi
from micronet_lm.model import LanguageModel
from micronet_lm.model.fingerprint import fingerprint_of
from micronet_lm.training import Run, evaluate, perplexity
from micronet_lm.training.agreement import agree, short
from micronet_lm.training.loop import make_deterministic
from micronet_lm.training.processes import Processes, joined_processes
from micronet_lm.training.shared_work import SharedWork

GRID = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Sparsities to measure; the unpruned model is measured once."""

POINTS, TABLE = "points.jsonl", "sensitivity.json"
"""The files of an analysis: single points, and the complete table."""

TOKENS = 20_000
"""Number of validation tokens for each point."""


Point = tuple[str, float]
"""A matrix's name and its sparsity; an empty name is the unpruned model."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The model and text of an analysis; only points with an equal setup can be compared."""

    model: str
    """Fingerprint of the analysed weights, their shape, and the cache's size."""

    tokens: int
    """Number of tokens for each point."""

    text: str
    """Fingerprint of these tokens."""


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """The curves of all matrices."""

    setup: Setup
    """Model and text of all points."""

    base: float
    """Loss of the unpruned model."""

    sizes: dict[str, int]
    """|φ| by the matrix's name."""

    losses: dict[str, dict[float, float]]
    """Loss by the matrix's name and sparsity."""

    def curves(self) -> dict[str, Curve]:
        """Return f_φ of every matrix, beginning with the unpruned model."""
        return {
            name: Curve(
                [0.0, *points], [perplexity(loss) for loss in (self.base, *points.values())]
            )
            for name, points in self.losses.items()
        }

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return {
            "setup": asdict(self.setup),
            "base": {"loss": self.base, "perplexity": perplexity(self.base)},
            "matrices": {
                name: {
                    "size": self.sizes[name],
                    "sparsities": list(points),
                    "losses": list(points.values()),
                    "perplexities": [perplexity(loss) for loss in points.values()],
                }
                for name, points in self.losses.items()
            },
        }


def analyse(
    model: LanguageModel,
    ids: NDArray[np.unsignedinteger],
    file: Path,
    processes: Processes,
    *,
    grid: Sequence[float] = GRID,
    weights: Phi = "matrices",
    advance: Callable[[int], None] = lambda _: None,
) -> Sensitivity:
    """Measure every tensor of `weights` at each sparsity of `grid`, except points in `file`.

    `ids` is the text to measure on. `advance` is called with the number of finished points.
    """
    matrices = prunable(model, weights)
    setup = _setup(model, ids)
    wanted = [("", 0.0), *((name, sparsity) for name in matrices for sparsity in grid)]
    facts = {"model": short(setup.model), "text": short(setup.text), "grid": _text(list(grid))}
    agree(processes, {**facts, "weights to prune": weights})
    # Only the leader's file counts: another host may have points of an older analysis.
    known = _read_points(file, setup) if processes.leads else {}
    todo = [number for number, point in enumerate(wanted) if point not in known]
    todo = json.loads(processes.share_text(_text(todo)))
    advance(len(wanted) - len(todo))
    if processes.leads and not file.exists():
        write_text(file, _text(asdict(setup)) + "\n")
    work = SharedWork("points", len(todo), processes)
    ranked: tuple[str, Ranking | None] = ("", None)
    for piece in work.pieces():
        name, sparsity = wanted[todo[piece]]
        if name and ranked[0] != name:
            ranked = (name, Ranking(matrices[name]))
        with _pruned(matrices[name], ranked[1], sparsity) if name else _untouched():
            loss = evaluate(model, ids).loss
        work.report(_text([todo[piece], loss]))
        if processes.leads:
            advance(_keep_news(work, wanted, known, file))
    processes.wait()  # until every point is measured
    if processes.leads:
        advance(_keep_news(work, wanted, known, file))
        if processes.count > 1:
            _put_in_order(file, wanted, known)
    losses = json.loads(processes.share_text(_text([known.get(point) for point in wanted])))
    known = dict(zip(wanted, losses, strict=True))
    return Sensitivity(
        setup=setup,
        base=known["", 0.0],
        sizes={name: matrix.numel() for name, matrix in matrices.items()},
        losses={name: {s: known[name, s] for s in grid} for name in matrices},
    )


def analyse_run(
    run: Run,
    ids: NDArray[np.unsignedinteger],
    out: Path,
    *,
    grid: Sequence[float] = GRID,
    weights: Phi = "matrices",
    advance: Callable[[int], None] = lambda _: None,
) -> Sensitivity:
    """Analyse a run's best model on a text; write the points, and the table at the end.

    Under `torchrun` every process calls this and gets the result.
    """
    model = run.model()
    make_deterministic()
    with joined_processes() as processes:
        model = model.to(processes.device)
        result = analyse(
            model, ids, out / POINTS, processes, grid=grid, weights=weights, advance=advance
        )
    if processes.leads:
        table = {**result.as_json(), "run": str(run.path)}
        write_text(out / TABLE, json.dumps(table, indent=1) + "\n")
    return result


@contextmanager
def _pruned(matrix: torch.nn.Parameter, ranking: Ranking | None, sparsity: float) -> Iterator[None]:
    """Prune one matrix, and restore it afterwards."""
    assert ranking is not None  # noqa: S101
    before = matrix.detach().clone()
    try:
        with torch.no_grad():
            matrix.mul_(ranking.keep(sparsity))
        yield
    finally:
        with torch.no_grad():
            matrix.copy_(before)


@contextmanager
def _untouched() -> Iterator[None]:
    yield


def load_sensitivity(folder: Path, model: LanguageModel) -> Sensitivity:
    """Read a complete analysis of this model."""
    file = folder / TABLE
    if not file.exists():
        raise RunError(
            f"{folder} has no complete sensitivity analysis ({TABLE}): make one with "
            "micronet sensitivity RUN, or choose --allocation uniform"
        )
    result = read_sensitivity(file)
    if result.setup.model != fingerprint_of(model):
        raise RunError(
            f"{folder} is the analysis of other weights than this run's: analyse it again with "
            "micronet sensitivity"
        )
    return result


def read_sensitivity(file: Path) -> Sensitivity:
    """Read a complete analysis, of any model."""
    with refusing_damage(file, RunError, "analyse again"):
        tree = read_json(file)
        matrices: dict[str, dict[str, Any]] = tree["matrices"]
        return Sensitivity(
            setup=Setup(**tree["setup"]),
            base=float(tree["base"]["loss"]),
            sizes={name: int(entry["size"]) for name, entry in matrices.items()},
            losses={
                name: dict(zip(entry["sparsities"], entry["losses"], strict=True))
                for name, entry in matrices.items()
            },
        )


def _setup(model: LanguageModel, ids: NDArray[np.unsignedinteger]) -> Setup:
    return Setup(
        model=fingerprint_of(model),
        tokens=len(ids),
        text=hashlib.sha256(np.ascontiguousarray(ids).tobytes()).hexdigest(),
    )


def _read_points(file: Path, setup: Setup) -> dict[Point, float]:
    """Read the points of an analysis with the same setup; ignore half a line at the end."""
    if not file.exists():
        return {}
    with refusing_damage(file, RunError, "remove it to analyse again"):
        there, *points = read_json_lines(file)
        known = {(str(p["matrix"]), float(p["sparsity"])): float(p["loss"]) for p in points}
        other = [key for key, value in asdict(setup).items() if there.get(key) != value]
    if other:
        raise RunError(
            f"{file} belongs to an analysis with other {', '.join(other)}: remove it, or choose "
            "another --out"
        )
    # Rewrite it without the half line, so that the next point begins a new line.
    whole, _, half = _written(file).rpartition("\n")
    if half:
        write_text(file, whole + "\n")
    return known


def _keep_news(work: SharedWork, wanted: list[Point], known: dict[Point, float], file: Path) -> int:
    """Keep the points that were measured since the last call; return how many."""
    news = {wanted[number]: loss for number, loss in map(json.loads, work.news())}
    known |= news
    _append(file, news)
    return len(news)


def _put_in_order(file: Path, wanted: list[Point], known: dict[Point, float]) -> None:
    """Sort the points of a file, which several processes may have measured in any order."""
    head, *lines = _written(file).splitlines()
    order = {point: number for number, point in enumerate(wanted)}
    asked = {_line(point, known[point]): order[point] for point in wanted}
    ordered = sorted(lines, key=lambda line: asked.get(line, -1))
    if ordered != lines:  # points of another grid stay in front
        write_text(file, "".join(line + "\n" for line in (head, *ordered)))


def _append(file: Path, points: dict[Point, float]) -> None:
    with open_own(file, os.O_WRONLY | os.O_APPEND) as out:
        for point, loss in points.items():
            out.write(_line(point, loss).encode() + b"\n")


def _written(file: Path) -> str:
    return read_small(file, LARGEST_RECORD).decode("utf-8")


def _line(point: Point, loss: float) -> str:
    name, sparsity = point
    return _text({"matrix": name, "sparsity": sparsity, "loss": loss})


def _text(value: Any) -> str:
    return json.dumps(value)  # keeps doubles exactly
