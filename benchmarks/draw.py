"""Draw measurements: learning curves, pruned runs, quantized runs, perplexity against bytes.

python benchmarks/draw.py curves OUT.png NAME=RUN [NAME=RUN ...]
python benchmarks/draw.py pruning OUT.png PRUNING.json
python benchmarks/draw.py quantization OUT.png runs/sweep/sweep.json
python benchmarks/draw.py frontier OUT.png docs/results/frontier/points.json
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import ScalarFormatter

from micronet_lm.training.metrics import read_metrics

HIGHEST = 1.5
"""Widths above this multiple of the unquantized perplexity are left out of the figure."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, given, many in (
        ("curves", "NAME=RUN", "+"),
        ("pruning", "PRUNING.json", 1),
        ("quantization", "SWEEP.json", 1),
        ("frontier", "POINTS.json", 1),
    ):
        verb = kinds.add_parser(kind)
        verb.add_argument("out", type=Path, metavar="OUT.png")
        verb.add_argument("given", nargs=many, metavar=given)
        verb.add_argument("--title", default="")
    asked = parser.parse_args()
    mpl.use("Agg")
    with figure(asked.out, asked.title) as axes:
        if asked.kind == "curves":
            for number, named in enumerate(asked.given):
                name, _, folder = named.partition("=")
                lines = read_metrics(Path(folder) / "metrics.jsonl")
                draw_curve(axes, name, lines, f"C{number}")
            finish_curves(axes)
        else:
            measured = json.loads(Path(asked.given[0]).read_text("utf-8"))
            draw = {
                "pruning": draw_pruning,
                "quantization": draw_widths,
                "frontier": draw_frontier,
            }
            draw[asked.kind](axes, measured)


@contextmanager
def figure(out: Path, title: str) -> Iterator[Axes]:
    """Yield axes with a grid and a title; write the file at the end."""
    drawn, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.grid(visible=True, alpha=0.25)
    axes.set_title(title)
    yield axes
    drawn.savefig(out, dpi=110)


def draw_curve(axes: Axes, name: str, lines: list[dict[str, Any]], colour: str) -> None:
    """Draw validation perplexity with marks, training perplexity thin."""
    for kind, style in (("train", {"linewidth": 0.6, "alpha": 0.5}), ("valid", {"marker": "o"})):
        points = [(x["step"], x["perplexity"]) for x in lines if x["kind"] == kind]
        label = f"{name}: {points[-1][1]:.1f}" if kind == "valid" else None
        axes.plot(*zip(*points, strict=True), color=colour, label=label, **style)


def finish_curves(axes: Axes) -> None:
    axes.set(xlabel="step", ylabel="perplexity (log scale)", yscale="log")
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(ScalarFormatter())
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.set_ylim(top=1000)
    axes.legend(title="validation, after the last step")


def draw_pruning(axes: Axes, measured: dict[str, Any]) -> None:
    """Draw validation perplexity over sparsity, one line per way of pruning."""
    dense = measured["dense"]["perplexity"]
    axes.axhline(dense, color="0.6", linewidth=1, label=f"before pruning: {dense:.2f}")
    for name, points in measured["lines"].items():
        places = [(point["sparsity"], point["perplexity"]) for point in points]
        axes.plot(*zip(*places, strict=True), "o-", label=name)
    axes.set(xlabel="sparsity", ylabel="validation perplexity")
    axes.legend()


def draw_widths(axes: Axes, measured: dict[str, Any]) -> None:
    """Draw validation perplexity over storage, one line per method, labelled with bits."""
    points: list[dict[str, Any]] = measured["points"]
    whole = next(point for point in points if point["method"] == "unquantized")
    axes.axhline(
        whole["perplexity"],
        color="0.6",
        linewidth=1,
        label=f"unquantized: {whole['perplexity']:.2f} at {whole['storage']:,.0f}",
    )
    for method in dict.fromkeys(point["method"] for point in points):
        own = [p for p in points if p["method"] == method and p["bits"] < whole["bits"]]
        shown = [p for p in own if p["perplexity"] < HIGHEST * whole["perplexity"]]
        places = [(p["storage"], p["perplexity"]) for p in shown]
        if not places:
            continue
        axes.plot(*zip(*places, strict=True), "o-", label=method)
        for point, place in zip(shown, places, strict=True):
            axes.annotate(str(point["bits"]), place, textcoords="offset points", xytext=(4, 5))
    axes.set(
        xlabel="storage (32-bit parameters, rules challenge); numbers are bits",
        ylabel="validation perplexity",
    )
    axes.legend()


def draw_frontier(axes: Axes, measured: dict[str, Any]) -> None:
    """Draw test perplexity over bytes, one line per family of models, points with their names."""
    for number, (family, points) in enumerate(measured.items()):
        above = 5 if number else -11  # our own names stand below their points
        ordered = sorted(points, key=lambda point: point["bytes"])
        places = [(point["bytes"] / 1e6, point["test"]) for point in ordered]
        axes.plot(*zip(*places, strict=True), "o-", label=family)
        for point, place in zip(ordered, places, strict=True):
            name = point.get("name", "")
            axes.annotate(name, place, textcoords="offset points", xytext=(4, above), fontsize=7)
    axes.set(xlabel="megabytes", ylabel="test perplexity", xscale="log", yscale="log")
    axes.set_xlim(right=400)  # room for the names of the largest
    for axis, ticks in (
        (axes.xaxis, (0.5, 1, 2, 5, 10, 20, 50, 100, 200)),
        (axes.yaxis, (50, 60, 70, 80, 100, 150, 200, 300)),
    ):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.legend(loc="center right")


if __name__ == "__main__":
    main()
