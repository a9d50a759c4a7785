"""How `micronet run` shows a plan and a finished pipeline to people."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from micronet_lm.cli.shown import amount, clock, size


def print_plan(root: str, rows: Sequence[dict[str, Any]], free: int | None) -> None:
    """Print one line a stage, and the sums of what is still to be done."""
    table = Table(box=None, header_style="bold", title=f"Plan of {root}", title_justify="left")
    table.add_column("stage", no_wrap=True)
    table.add_column("state")
    for column in ("parameters", "tokens", "memory", "disk", "time"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        state = row["state"] + (f" ({', '.join(row['changes'])})" if row["changes"] else "")
        style = "" if row["runs"] else "dim"
        table.add_row(row["stage"], state, *_cells(row), style=style)
    todo = [row for row in rows if row["runs"]]
    total = {key: sum(row[key] or 0 for row in todo) for key in ("tokens", "disk", "seconds")}
    memory = max((row["memory"] or 0 for row in todo), default=0)
    table.add_section()
    all_cells = _cells({"parameters": None, "memory": memory, **total})
    table.add_row("still to do", f"{len(todo)} of {len(rows)}", *all_cells, style="bold")
    console = Console()
    console.print(table)
    room = f"; {size(free)} are free on the disk" if free else ""
    console.print(
        f"Time and memory are estimated from a short measurement on this machine{room}.",
        highlight=False,
        soft_wrap=True,
    )


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        amount(row["parameters"]),
        amount(row["tokens"]),
        size(row["memory"]),
        size(row["disk"]),
        clock(row["seconds"]),
    ]
