"""What a plan says below its table: where its long stages should run, with the commands."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from micronet_lm.cli.output import clock, make_table

LONG = 6 * 3600
"""Seconds after which a stage is worth a cluster."""

DAY = 86_400
"""Seconds on one host's GPUs after which a stage is worth several nodes."""

GPUS = 8
"""GPUs of a host."""


@dataclass(frozen=True, kw_only=True)
class Commands:
    """The words of a plan's own command, and how its teacher is trained for itself."""

    plan: Sequence[str]
    """The command of the plan without --dry-run."""
    teacher: Sequence[str] = ()
    """The words after `micronet` that train the teacher elsewhere; none where it cannot be."""


def advice(
    rows: Sequence[Mapping[str, Any]], commands: Commands | None
) -> Iterator[RenderableType]:
    """Yield what long stages want, and a table of what they would take elsewhere."""
    from micronet_lm.pipeline.places import PLACES, assumptions, seconds_at, sharing
    from micronet_lm.pipeline.resources import COMPUTING, SHARED

    todo = [row for row in rows if row["runs"]]
    long = [row["stage"] for row in todo if (row["seconds"] or 0) > LONG]
    if not long:
        return
    yield f"More than {LONG // 3600} hours each here: {', '.join(dict.fromkeys(long))}."
    table = make_table("stage", *(place.name for place in PLACES), title="Elsewhere", left=True)
    times = [[seconds_at(place, row) for place in PLACES] for row in todo]
    for row, own in zip(todo, times, strict=True):
        table.add_row(row["stage"], *map(clock, own))
    table.add_section()
    sums = [sum(seconds or 0 for seconds in column) for column in zip(*times, strict=True)]
    table.add_row("still to do", *map(clock, sums), style="bold")
    yield table
    yield assumptions()
    by_name = {row["stage"]: row for row in todo}
    on_gpus = [name for name in by_name if name in long and name in COMPUTING]
    shared = [name for name in on_gpus if name in SHARED]
    yield f"GPUs help: {', '.join(on_gpus) or 'none of them'}."
    if shared:
        yield f"Several GPUs or nodes can share: {', '.join(shared)}."
    if commands is None:
        return
    words = ["--executor", "slurm"]
    for name in shared:
        gpus = sharing(by_name[name], GPUS)
        words += ["--gpus", f"{name}={gpus}"]
        last = seconds_at(PLACES[-1], by_name[name]) or 0
        if last > DAY and sharing(by_name[name], 2 * gpus) == 2 * gpus:
            words += ["--nodes", f"{name}=2"]
    yield "As jobs of a cluster (docs/cluster.md):"
    yield f"  {_line([*commands.plan, *words])}"
    if commands.teacher and "teacher" in shared:
        each = str(sharing(by_name["teacher"], GPUS))
        started = ["torchrun", "--nproc-per-node", each, "-m", "micronet_lm", *commands.teacher]
        yield "The teacher on a host of its own, and then the rest with it:"
        yield f"  {_line([*commands.plan, '--until', 'corpus'])}"
        yield f"  {_line([*started, '--out', 'runs/teacher'])}"
        yield f"  {_line([*commands.plan, '--take', 'teacher=runs/teacher'])}"


def _line(words: Sequence[str]) -> str:
    return " ".join(map(shlex.quote, words))
