"""The look of all figures of reports: style, round ticks, curves that stay apart, labels."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from micronet_lm.accounting.figure import tick_label
from micronet_lm.report.palette import INK, LINE, PAPER, SERIES, SOFT

STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # text stays text: small, and the reader's own font
    "svg.hashsalt": "micronet",  # the same drawing has the same bytes
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": LINE,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
}

DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def curve_style(number: int) -> dict[str, Any]:
    """Return the style that distinguishes one curve from others: colour, dashes and marker."""
    turn, place = divmod(number, len(SERIES))
    return {
        "color": SERIES[place],
        "linestyle": DASHES[(place + turn) % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": max(3, 8 - 1.5 * number),  # hollow and smaller: one shows inside another
        "markerfacecolor": "none",
    }


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers within a range for a logarithmic axis, at least two if possible.

    They are powers of ten with 2 and 5 times as much between them, fewer for a wide range; for a
    narrow one they are equally far apart.
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for leading in ((1, 2, 5), (1, 3), (1,)):
        ticks = [digit * 10.0**decade for decade in decades for digit in leading]
        inside = [tick for tick in ticks if low <= tick <= high]
        if leading == (1, 2, 5) and len(inside) < 3:
            even = MaxNLocator(most - 1, steps=[1, 2, 5, 10]).tick_values(low, high)
            return [float(tick) for tick in even if low <= tick <= high and tick > 0]
        if len(inside) <= most:
            return inside
    every = math.ceil(len(inside) / most)
    return inside[::every]


def logarithmic(axis: Any, low: float, high: float) -> None:
    """Give a logarithmic axis a range, round ticks, and nothing between them."""
    axes = axis.axes
    which = "x" if axis is axes.xaxis else "y"
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis.set_major_locator(FixedLocator(round_ticks(low, high)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: tick_label(value))


def linear(axis: Any, *, whole: bool = False) -> None:
    """Give an axis a few round ticks, whole numbers only if asked for."""
    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=whole))
    axis.set_major_formatter(lambda value, _: tick_label(value))


def label_points(axes: Axes, names: Sequence[str], places: Sequence[tuple[float, float]]) -> None:
    """Write names beside points, moved apart where points are close; call it with limits set."""
    figure = axes.figure.figure  # of all axes, also of those in a part of it
    figure.draw_without_rendering()  # settles where the axes are
    dots = axes.transData.transform(np.array(places))
    scale = 72 / figure.dpi
    dots = dots * scale
    taken: list[tuple[float, float]] = []
    for number in np.argsort(-dots[:, 1], kind="stable"):  # from top to bottom
        x, y = dots[number]
        height = y + 8.0
        while any(abs(x - left) < 80 and abs(height - used) < 12 for left, used in taken):
            height -= 3
        taken.append((float(x), float(height)))
        axes.annotate(
            names[number],
            places[number],
            (8, height - y),
            textcoords="offset points",
            fontsize=10,
            va="center",
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},  # lines end at the name
            zorder=2,
        )
