"""The figure of a sensitivity analysis: one curve per matrix, one panel per kind of matrix."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from micronet_lm.compression.sensitivity import Sensitivity
from micronet_lm.files import replacing
from micronet_lm.report.axes import STYLE, curve_style, linear, logarithmic
from micronet_lm.report.palette import GRAY
from micronet_lm.training import perplexity

_KINDS = {
    "embedding.tables": "embedding tables",
    "projections": "projections and tail entries",
    "tail_weight": "projections and tail entries",
    "attention.qkv": "attention: queries, keys, values",
    "attention.output": "attention: output",
    "inner": "feed-forward: inner",
    "outer": "feed-forward: outer",
}


def draw_sensitivity(result: Sensitivity, path: Path, *, subject: str) -> None:
    """Draw the perplexity over the sparsity of every matrix to a PNG."""
    figure = sensitivity_figure(result, subject=subject)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)


def sensitivity_figure(result: Sensitivity, *, subject: str) -> Figure:
    """Return a figure of perplexity over each matrix's sparsity, all panels on the same scale."""
    panels: dict[str, list[str]] = {}
    for name in result.losses:
        kind = next((kind for key, kind in _KINDS.items() if key in name), "others")
        panels.setdefault(kind, []).append(name)
    base = perplexity(result.base)
    with mpl.rc_context(STYLE):
        rows = -(-len(panels) // 3)
        columns = min(3, len(panels))
        figure = Figure(figsize=(3.7 * columns, 3.4 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flatten()
        for axes, (kind, names) in zip(grid, panels.items(), strict=False):
            for number, name in enumerate(names):
                points = result.losses[name]
                label = f"{_short(name)} ({result.sizes[name]:,})"
                heights = [base, *(perplexity(loss) for loss in points.values())]
                axes.plot([0, *points], heights, label=label, **curve_style(number))
            axes.axhline(base, color=GRAY, linewidth=0.8, zorder=0)
            axes.set_title(kind, fontsize=10)
            axes.legend(fontsize=8)
        worst = perplexity(max(max(points.values()) for points in result.losses.values()))
        # What matters for pruning is near the base.
        logarithmic(grid[0].yaxis, base * 0.97, min(base * 2, max(worst, base * 1.1) * 1.05))
        linear(grid[0].xaxis)
        figure.supxlabel("sparsity of the matrix", fontsize=10)
        figure.supylabel("perplexity", fontsize=10)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        figure.suptitle(f"Sensitivity of every matrix to pruning, {subject}", fontsize=11)
    return figure


def _short(name: str) -> str:
    parts = name.removesuffix(".weight").split(".")
    if parts[0] == "blocks":
        return f"layer {int(parts[1]) + 1}"
    return " ".join(parts[-3:]) if "projections" in parts else " ".join(parts[-2:])
