"""Progress bars on standard error; silent if it is not a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

Advance = Callable[[float], None]


@contextmanager
def bar(
    description: str, total: float | None, *, unit: str = "", console: Console | None = None
) -> Iterator[Advance]:
    """Show a bar and yield the function that advances it: `advance(n)`.

    `total` is None if the amount of work is unknown; `unit` is `B` for bytes, which are shown with
    a speed, or empty for counted items. If standard error is not a terminal (a log file, a pipe),
    nothing is written.
    """
    if console is None:
        console = Console(stderr=True)
        watched = (
            sys.stderr.isatty()
        )  # not `is_terminal`, which a CI that forces colours makes true
    else:
        watched = console.is_terminal
    if not watched:
        yield lambda amount: None
        return
    amounts: list[ProgressColumn] = (
        [DownloadColumn(), TransferSpeedColumn()] if unit == "B" else [MofNCompleteColumn()]
    )
    columns = [TextColumn("{task.description}"), BarColumn(), *amounts, TimeRemainingColumn()]
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(description, total=total)
        yield lambda amount: progress.advance(task, amount)
