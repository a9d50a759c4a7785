"""How `micronet run` shows a plan and a finished pipeline to people."""

from collections.abc import Mapping, Sequence
from pathlib import Path
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


def print_pipeline(root: Path, stages: Mapping[str, Mapping[str, Any]]) -> None:
    """Print what came of every stage, the model's costs, and a few lines that it writes."""
    table = Table(box=None, header_style="bold", title=str(root), title_justify="left")
    table.add_column("stage", no_wrap=True)
    for column in ("validation", "test", "time"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, entry in stages.items():
        keys = ("validation_perplexity", "test_perplexity")
        cells = [f"{entry[key]:,.2f}" if key in entry else "" for key in keys]
        table.add_row(name, *cells, clock(entry["seconds"]))
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    packed, account = stages.get("pack"), stages.get("account")
    if packed is None or account is None or not account["complete"]:
        return
    file = Path(packed["path"]) / "model.safetensors"
    console.print(
        f"\n[bold]{file}[/bold]: {packed['bytes']:,} bytes, storage {account['storage']:,.0f} "
        f"32-bit parameters, {account['operations']:,.0f} operations a token, score "
        f"{account['score']:.5f}"
    )
    for prompt, written in _samples(file, Path(stages["corpus"]["path"])):
        console.print(f"  {prompt} [bold]|[/bold] ", end="")
        console.print(written, markup=False)
    if "report" in stages:
        console.print(f"Report: {stages['report']['path']}/report.html")
    console.print(f'Next: micronet predict "..." -m {file}')


def _samples(file: Path, corpus: Path) -> list[tuple[str, str]]:
    from micronet_lm.corpus import Corpus
    from micronet_lm.report.samples import write_samples

    return write_samples(file, Corpus.open(corpus))


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        amount(row["parameters"]),
        amount(row["tokens"]),
        size(row["memory"]),
        size(row["disk"]),
        clock(row["seconds"]),
    ]
