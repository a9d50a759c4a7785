"""What verbs print: reports and tables on standard output, everything else on standard error."""

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

JOINERS = "\u200c\u200d"
"""Marks within words of Persian, Hindi and other languages, and in emoji; terminals show them."""


def print_report(report: Any, shown: Iterable[RenderableType], *, as_json: bool) -> int:
    """Print a report as one JSON object, or what people are shown instead; return the exit code.

    `shown` is not looked at for JSON, so a generator costs nothing there.
    """
    if as_json:
        print(json.dumps(report))  # noqa: T201
    else:
        print_shown(shown)
    return 0


def print_shown(shown: Iterable[RenderableType]) -> None:
    """Print what people are shown; strings as they are, tables without cutting off a number."""
    for part in shown:
        if isinstance(part, str):
            print(part)  # noqa: T201
        else:
            _console(part).print(part, soft_wrap=isinstance(part, Text))


def _console(part: RenderableType) -> Console:
    """Return a console that is wide enough for a table none of whose columns can be folded."""
    console = Console(highlight=False)
    if not (isinstance(part, Table) and all(column.no_wrap for column in part.columns)):
        return console
    needed = console.measure(part, options=console.options.update(width=1000)).maximum
    return Console(highlight=False, width=max(console.width, needed))


def make_table(first: str, *others: str, title: str | None = None, left: bool = False) -> Table:
    """Make a table whose first column holds names and whose others hold numbers.

    The title is centred, or with `left` at the left.
    """
    table = Table(box=None, header_style="bold", title=title)
    table.title_justify = "left" if left else "center"
    table.add_column(first, no_wrap=True)
    for column in others:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def tell(sentence: str) -> None:
    """Report progress on standard error."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def harmless(text: str, *, kept: str = "") -> str:
    """Escape characters that a terminal would obey or hide, except those in `kept`.

    A packed file may come from anywhere, and its card and its words may hold any character.
    """
    kept += JOINERS
    return "".join(
        character
        if character.isprintable() or character in kept
        else character.encode("unicode_escape").decode()
        for character in text
    )


def amount(number: float | None) -> str:
    """Write a count: 8.30 M, 103 M, 4,059; nothing for 0."""
    if not number:
        return ""
    for unit, name in ((1e9, "G"), (1e6, "M")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return f"{number:,.0f}"


def size(count: float | None) -> str:
    """Write a number of bytes: 12.3 MB; nothing for 0."""
    if not count:
        return ""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} B"


def clock(seconds: float | None) -> str:
    """Write a time: 12 s, 5:03 min, 3.2 h, 41 days."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    if seconds < 3600:
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:,.0f} days"
