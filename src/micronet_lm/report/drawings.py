"""The report's figures as SVG: training curves, and size against perplexity."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from micronet_lm.pipeline.stages import MODELS

STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # keep text as text: smaller, and in the reader's font
    "svg.hashsalt": "micronet",  # the same drawing has the same bytes
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
}

_COLOURS = ("#2f6690", "#c8553d", "#3f8f63", "#6d4c9f", "#e0a458")


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
        columns = min(panels, 2)
        rows = -(-panels // columns)
        figure = Figure(figsize=(9.6, 3.1 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, (colour, (name, lines)) in zip(
            grid, zip(_COLOURS * 2, runs.items(), strict=False), strict=False
        ):
            for kind, style in (("train", {"alpha": 0.45, "linewidth": 1.0}), ("valid", {})):
                points = [(line["step"], line["perplexity"]) for line in lines if _is(line, kind)]
                if not points:
                    continue
                steps, heights = zip(*points, strict=True)
                label = "training" if kind == "train" else "validation"
                marker = "" if kind == "train" else "o"
                axes.plot(
                    steps, heights, color=colour, marker=marker, markersize=4, label=label, **style
                )
            axes.set(title=name, xlabel="step", ylabel="perplexity")
            seen = [line["perplexity"] for line in lines if "perplexity" in line]
            if max(seen) > 3 * min(seen):  # a narrow range would have no tick on a log scale
                axes.set_yscale("log")
                _plain_ticks(axes)
            axes.grid(visible=True, alpha=0.25, which="both")
            axes.legend(frameon=False, fontsize=9)
        for axes in grid[panels:]:
            axes.set_visible(False)
    return figure


def trade(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw validation perplexity over storage, one point per stage, in pipeline order."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.8), layout="constrained")
        axes = figure.subplots()
        way = [row for row in rows if row["stage"] in MODELS]
        sizes = [4 * row["storage"] / 1e6 for row in way]
        heights = [row["validation_perplexity"] for row in way]
        axes.plot(sizes, heights, color="0.75", zorder=0)
        for row in rows:
            if row["stage"] == "pack":
                continue
            colour = "#2f6690" if row["stage"] in MODELS else "#6b7280"
            place = (4 * row["storage"] / 1e6, row["validation_perplexity"])
            axes.plot(*place, "o", color=colour)
            axes.annotate(row["stage"], place, (6, 5), textcoords="offset points", fontsize=9)
        axes.set_xscale("log")
        axes.set(xlabel="storage in MB (32-bit parameters x 4)", ylabel="validation perplexity")
        axes.margins(0.15, 0.2)
        axes.grid(visible=True, alpha=0.25, which="both")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}" if _leading(value) else "")
    return figure


def _is(line: Mapping[str, Any], kind: str) -> bool:
    return line["kind"] == kind and "perplexity" in line


def _plain_ticks(axes: Any) -> None:
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:,.0f}" if _leading(value) else "")


def _leading(value: float) -> bool:
    """Return whether a minor tick of a logarithmic axis has a label."""
    return f"{value:.0e}"[0] in "235"
