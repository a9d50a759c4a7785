"""The report's figures as SVG: training curves, and size against perplexity."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from micronet_lm.pipeline.stages import MODELS
from micronet_lm.report.axes import STYLE, label_points, linear, logarithmic
from micronet_lm.report.palette import BLUE, GRAY, LINE, VERMILION

_TRAINING: dict[str, Any] = {"color": VERMILION, "linewidth": 1.0}
_VALIDATION: dict[str, Any] = {
    "color": BLUE,
    "linestyle": (0, (5, 2)),
    "linewidth": 1.8,
    "marker": "o",
    "markersize": 5,
}


def svg_of(figure: Figure) -> str:
    """Return a figure as SVG, without its creation time."""
    out = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def curves(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Draw perplexity over steps of all trained stages: training thin, validation with points."""
    with mpl.rc_context(STYLE):
        panels = len(runs)
        columns = 3 if panels in {3, 5, 6} else min(panels, 2)
        rows = -(-panels // columns)
        wide = 3.6 if columns == 3 else 4.8
        figure = Figure(figsize=(wide * columns, 3.1 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, (name, lines) in zip(grid, runs.items(), strict=False):
            _curve(axes, name, lines)
        for axes in grid[panels:]:
            axes.set_visible(False)
    return figure


def _curve(axes: Axes, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
    seen: list[float] = []
    for kind, label, style in (
        ("train", "training", _TRAINING),
        ("valid", "validation", _VALIDATION),
    ):
        points = [(line["step"], line["perplexity"]) for line in lines if _is(line, kind)]
        if points:
            steps, heights = zip(*points, strict=True)
            axes.plot(steps, heights, label=label, **style)
            seen += heights
    axes.set(title=name, xlabel="step", ylabel="perplexity")
    linear(axes.xaxis, whole=True)
    if max(seen) > 3 * min(seen):
        logarithmic(axes.yaxis, 0.9 * min(seen), 1.1 * max(seen))
    else:
        linear(axes.yaxis)
    axes.legend()


def trade(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw validation perplexity over storage, one point per stage, in the pipeline's order."""
    shown = [row for row in rows if row["stage"] != "pack"]
    places = {row["stage"]: _place(row) for row in shown}
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 4.2), layout="constrained")
        axes = figure.subplots()
        way = [place for stage, place in places.items() if stage in MODELS]
        axes.plot(*zip(*way, strict=True), color=GRAY, linewidth=1.2, zorder=1)
        for stage, place in places.items():
            on_way = stage in MODELS
            axes.plot(
                *place,
                color=BLUE if on_way else GRAY,
                marker="o" if on_way else "s",
                markersize=7,
                zorder=3,
                markeredgecolor=LINE,
            )
        axes.set(xlabel="storage in MB (32-bit parameters × 4)", ylabel="validation perplexity")
        sizes = [place[0] for place in places.values()]
        logarithmic(axes.xaxis, min(sizes) / 1.3, max(sizes) * 1.5)
        linear(axes.yaxis)
        axes.margins(y=0.2)
        label_points(axes, list(places), list(places.values()))
    return figure


def _place(row: Mapping[str, Any]) -> tuple[float, float]:
    return 4 * row["storage"] / 1e6, row["validation_perplexity"]


def _is(line: Mapping[str, Any], kind: str) -> bool:
    return line["kind"] == kind and "perplexity" in line
