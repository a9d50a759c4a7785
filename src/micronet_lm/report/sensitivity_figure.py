"""The figure of a sensitivity analysis: one curve per matrix, one panel per kind of matrix."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from micronet_lm.compression.sensitivity import Sensitivity
from micronet_lm.files import replacing
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
    with mpl.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}):
        rows = -(-len(panels) // 3)
        figure = Figure(figsize=(11, 3.2 * rows), layout="constrained")
        grid = figure.subplots(rows, 3, squeeze=False, sharex=True, sharey=True).flatten()
        for axes, (kind, names) in zip(grid, panels.items(), strict=False):
            colours = mpl.colormaps["viridis"].resampled(max(2, len(names)))
            for number, name in enumerate(names):
                points = result.losses[name]
                label = f"{_short(name)} ({result.sizes[name]:,})"
                heights = [base, *(perplexity(loss) for loss in points.values())]
                axes.plot([0, *points], heights, ".-", color=colours(number), label=label)
            axes.axhline(base, color="0.7", linewidth=0.8, zorder=0)
            axes.set(title=kind, xlabel="sparsity of the matrix", ylabel="perplexity")
            axes.grid(visible=True, alpha=0.25)
            axes.legend(frameon=False, fontsize=7)
        grid[0].set_yscale("log")
        grid[0].set_ylim(base * 0.97, base * 2)  # only the range near the base matters for pruning
        ticks = [base * factor for factor in (1, 1.1, 1.25, 1.5, 2)]
        grid[0].set_yticks(ticks, [f"{tick:.0f}" for tick in ticks], minor=False)
        grid[0].minorticks_off()
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        figure.suptitle(f"Sensitivity of every matrix to pruning, {subject}", fontsize=10)
    return figure


def _short(name: str) -> str:
    parts = name.removesuffix(".weight").split(".")
    if parts[0] == "blocks":
        return f"layer {int(parts[1]) + 1}"
    return " ".join(parts[-3:]) if "projections" in parts else " ".join(parts[-2:])
