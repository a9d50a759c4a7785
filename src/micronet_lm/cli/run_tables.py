"""How `micronet run` shows a plan and a finished pipeline to people."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from micronet_lm.cli.output import amount, clock, make_table, size
from micronet_lm.cli.plan_advice import Commands, advice

if TYPE_CHECKING:
    from micronet_lm.report.samples import Sample


def plan_shown(
    out: str,
    stages: Sequence[Mapping[str, Any]],
    device: str,
    free: int | None = None,
    commands: Commands | None = None,
) -> Iterator[RenderableType]:
    """Yield a table with one line per stage and the sums of what is still to be done.

    `device` is what the estimates were measured with.
    """
    columns = ("state", "parameters", "tokens", "memory", "disk", "time")
    table = make_table("stage", *columns, title=f"Plan of {out}", left=True)
    table.columns[1].justify, table.columns[1].no_wrap = "left", False
    for row in stages:
        state = row["state"] + (f" ({', '.join(row['changes'])})" if row["changes"] else "")
        table.add_row(row["stage"], state, *_cells(row), style="" if row["runs"] else "dim")
    todo = [row for row in stages if row["runs"]]
    total = {key: sum(row[key] or 0 for row in todo) for key in ("tokens", "disk", "seconds")}
    memory = max((row["memory"] or 0 for row in todo), default=0)
    table.add_section()
    all_cells = _cells({"parameters": None, "memory": memory, **total})
    table.add_row("still to do", f"{len(todo)} of {len(stages)}", *all_cells, style="bold")
    yield table
    room = f"; {size(free)} are free on the disk" if free else ""
    yield (
        "Time and memory are estimated from a short measurement on this machine with "
        f"{device}{room}."
    )
    yield from advice(stages, commands)


def pipeline_shown(root: Path, stages: Mapping[str, Mapping[str, Any]]) -> Iterator[RenderableType]:
    """Yield what became of every stage, the model's costs, and a few lines that it writes."""
    table = make_table("stage", "validation", "test", "time", title=str(root), left=True)
    for name, entry in stages.items():
        keys = ("validation_perplexity", "test_perplexity")
        cells = [f"{entry[key]:,.2f}" if key in entry else "" for key in keys]
        table.add_row(name, *cells, clock(entry["seconds"]))
    yield table
    packed, account = stages.get("pack"), stages.get("account")
    if packed is None or account is None or not account["complete"]:
        return
    file = Path(packed["path"]) / "model.safetensors"
    yield ""
    yield Text.assemble(
        (str(file), "bold"),
        f": {packed['bytes']:,} bytes, storage {account['storage']:,.0f} 32-bit parameters, "
        f"{account['operations']:,.0f} operations per token, score {account['score']:.5f}",
    )
    for sample in _samples(file, Path(stages["corpus"]["path"])):
        yield Text.assemble(f"  {sample.beginning} ", ("|", "bold"), f" {sample.written}")
    if "report" in stages:
        yield f"Report: {stages['report']['path']}/report.html"
    yield f'Next: micronet predict "..." -m {root}'


def _samples(file: Path, corpus: Path) -> "list[Sample]":
    from micronet_lm.corpus import Corpus
    from micronet_lm.report.samples import write_samples

    return write_samples(file, Corpus.open(corpus))


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [
        amount(row["parameters"]),
        amount(row["tokens"]),
        size(row["memory"]),
        size(row["disk"]),
        clock(row["seconds"]),
    ]
