"""The two figures of section 5.2."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from micronet_lm.files import replacing
from micronet_lm.report.axes import STYLE, linear, logarithmic
from micronet_lm.report.cache_effect import CacheEffect, Difference
from micronet_lm.report.palette import BLUE, GRAY, VERMILION

_AXIS = {
    "tokens": "token index, by decreasing frequency",
    "gaps": "token gap: distance to the word's previous occurrence",
}


def draw_cache_effect(effect: CacheEffect, path: Path, *, subject: str) -> None:
    """Draw one panel per comparison: the loss difference, and the bins' sizes dashed."""
    panels = len(effect.differences)
    with mpl.rc_context({**STYLE, "font.size": 9}):
        figure = Figure(figsize=(5.4 * panels, 3.8), layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False)[0]
        for number, difference in enumerate(effect.differences):
            _panel(axes[number], effect, difference, effect.new_words[number])
        figure.suptitle(f"Where the loss differs, {subject}", fontsize=10)
        with replacing(path) as temporary:
            figure.savefig(temporary, format="png", dpi=130)


def _panel(axes: Axes, effect: CacheEffect, difference: Difference, new_words: float) -> None:
    upper = [edge - 1 for edge in effect.edges[1:]]  # a bin's sum is reached at its end
    total = difference.cumulative[-1] + new_words
    # The same height at the end: evenly spread, the two curves would be one.
    evenly = [share * total for share in effect.sizes]
    for heights, colour, dashes, label in (
        (difference.cumulative, BLUE, "-", "loss difference"),
        (evenly, VERMILION, "--", "bin size (the difference, if spread evenly)"),
    ):
        axes.plot(upper, heights, dashes, color=colour, label=label)
        if effect.by == "gaps":  # words without a previous occurrence come after all gaps
            axes.plot([upper[-1], 2 * upper[-1]], [heights[-1], total], ":", color=colour)
    if effect.by == "gaps":
        axes.plot(2 * upper[-1], total, "o", color=BLUE, markersize=4)
        axes.annotate(
            "new words",
            (2 * upper[-1], total),
            textcoords="offset points",
            xytext=(-12, 0),
            ha="right",
            va="center",
            fontsize=7,
        )
    axes.axhline(0, color=GRAY, linewidth=0.8, zorder=0)
    logarithmic(axes.xaxis, 0.8, 3 * upper[-1])
    linear(axes.yaxis)
    axes.set(
        xlabel=_AXIS[effect.by],
        ylabel="cumulative loss difference (nats per token)",
        title=f"{difference.name}  −  {difference.reference}:  {total:+.4f} nats",
    )
    axes.title.set_fontsize(9)
    if total:
        shares = axes.secondary_yaxis("right", functions=(_scaled(1 / total), _scaled(total)))
        shares.set_ylabel("cumulative bin size (share of tokens)", color=VERMILION)
        shares.tick_params(colors=VERMILION)
    axes.legend(loc="lower left" if total < 0 else "upper left", fontsize=8)


def _scaled(factor: float) -> Callable[[Any], Any]:
    return lambda value: np.asarray(value) * factor
