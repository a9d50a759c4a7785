"""A figure of storage and operations by part of the model."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from micronet_lm.accounting.rows import Account
from micronet_lm.accounting.summary import factors, grouped
from micronet_lm.errors import UsageError
from micronet_lm.files import replacing

if TYPE_CHECKING:  # matplotlib is needed only for figures
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMS = ("png", "svg", "pdf")
"""File formats of figures."""

KINDS = {"multiplies": "#0072b2", "adds": "#56b4e9", "other": "#e69f00"}
"""Kinds of operations, and their colours: those of Okabe and Ito, for any colour vision."""

COMPONENTS = {
    "embedding": "#6b7280",
    "attention": "#0072b2",
    "feed-forward": "#56b4e9",
    "softmax": "#009e73",
    "cache": "#e69f00",
}
"""Components of a model, and their colours."""


def check_form(path: Path) -> None:
    """Refuse a file format that cannot be drawn, before the counting."""
    if path.suffix.removeprefix(".").lower() not in FORMS:
        raise UsageError(f"--plot {path} must end in .{', .'.join(FORMS[:-1])} or .{FORMS[-1]}")


def plot(account: Account, path: Path) -> None:
    """Draw storage and operations by part of the model to a file."""
    check_form(path)
    figure = account_figure(account)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=120, format=path.suffix.removeprefix(".").lower())


def account_figure(account: Account) -> "Figure":
    """Return a figure of storage and operations by part of the model."""
    from matplotlib.figure import Figure

    parts = grouped(account.rows, "part")
    names = [part.name for part in parts]
    figure = Figure(figsize=(11, 2.1 + 0.3 * len(parts)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    _bars(left, names, {name: _storage(account, name, names) for name in COMPONENTS}, COMPONENTS)
    _bars(right, names, {kind: [getattr(p, kind) for p in parts] for kind in KINDS}, KINDS)
    storage, operations = factors(account)
    for axes, what, unit, total, factor in (
        (left, "storage", "32-bit parameters", account.storage, storage),
        (right, "operations", "32-bit operations per token", account.operations, operations),
    ):
        below = f": 1/{factor:,.1f} of the baseline" if factor else ""
        axes.set_title(f"{what} {float(total):,.0f}{below}", fontsize=11)
        axes.set_xlabel(unit)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="outside lower left" if axes is left else "outside lower right",
            ncols=len(labels),
            frameon=False,
            fontsize=9,
        )
        for height, part in enumerate(parts):
            amount = getattr(part, what)
            share = f"{float(amount / total):.1%}" if amount else "none"
            end = (float(amount), height)
            axes.annotate(share, end, (4, 0), textcoords="offset points", va="center", fontsize=9)
    left.invert_yaxis()  # the step goes from top to bottom
    options = "".join(f"\n{option}" for option in account.rules.options)
    figure.suptitle(
        f"{account.target.name}: score {float(account.score):.5f} by rules '{account.rules.name}'"
        f"{options}",
        fontweight="bold",
    )
    return figure


def tick_label(value: float) -> str:
    """Return a round number as short as people write it: 0.5, 800, 20,000, 1.5 M."""
    for size, unit in ((1e9, " G"), (1e6, " M")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"


def _storage(account: Account, component: str, names: list[str]) -> list[Fraction]:
    """Return what one component stores in each part."""
    rows = [row for row in account.rows if row.label.component == component]
    found = {group.name: group.storage for group in grouped(rows, "part")}
    return [found.get(name, Fraction(0)) for name in names]


def _bars(
    axes: "Axes", names: list[str], columns: dict[str, list[Fraction]], colours: dict[str, str]
) -> None:
    """Stack the columns as horizontal bars, one per name."""
    from matplotlib.ticker import MaxNLocator

    places = list(range(len(names)))
    begin = [0.0] * len(names)
    for label, amounts in columns.items():
        if any(amounts):
            widths = [float(amount) for amount in amounts]
            axes.barh(places, widths, left=begin, color=colours[label], label=label, height=0.75)
            begin = [start + width for start, width in zip(begin, widths, strict=True)]
    axes.set_yticks(places, names)
    axes.set_xlim(0, max(begin) * 1.13)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: tick_label(value))
    axes.tick_params(axis="x", labelsize=9)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", alpha=0.5)
    axes.set_axisbelow(True)
