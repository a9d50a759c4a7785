"""Parts that reports of pipelines and of single runs have in common."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from micronet_lm.report.document import Code, Picture, Section, Table, Text
from micronet_lm.report.drawings import curves, svg_of
from micronet_lm.report.environment import environment
from micronet_lm.report.quantities import shown
from micronet_lm.report.sensitivity_figure import sensitivity_figure
from micronet_lm.runs.files import METRICS
from micronet_lm.training.metrics import read_metrics


def curves_section(runs: Mapping[str, Path]) -> Section | None:
    """Draw the training of every run that has one."""
    lines = {name: read_metrics(path / METRICS) for name, path in runs.items()}
    trained = {
        name: found
        for name, found in lines.items()
        if len({line["step"] for line in found if "perplexity" in line}) > 1
    }
    if not trained:
        return None
    return Section(
        title="Curves",
        blocks=[
            Picture(
                name="curves",
                caption="Perplexity over steps. Solid: training, the mean of the last steps; "
                "dashed with points: validation.",
                svg=svg_of(curves(trained)),
            )
        ],
    )


def sensitivity_section(folder: Path) -> Section | None:
    """Draw the sensitivity of each matrix to pruning, if measured."""
    from micronet_lm.compression.sensitivity import TABLE, read_sensitivity

    if not (folder / TABLE).exists():
        return None
    result = read_sensitivity(folder / TABLE)
    return Section(
        title="Sensitivity",
        blocks=[
            Text(
                text="Each matrix was pruned by magnitude with all others unchanged, and measured "
                f"on the first {result.setup.tokens:,} tokens of the validation split. Pruning "
                "removes most weights where the curve stays flat."
            ),
            Picture(
                name="sensitivity",
                caption="Perplexity over the sparsity of one matrix.",
                svg=svg_of(sensitivity_figure(result, subject="one matrix at a time")),
            ),
        ],
    )


def accounting_section(rows: Sequence[Mapping[str, Any]], figure: Any, note: str) -> Section:
    """Show storage and operations by part of the model."""
    parts: dict[str, dict[str, float]] = {}
    for row in rows:
        sums = parts.setdefault(row["part"], dict.fromkeys(_COUNTED, 0.0))
        for key in _COUNTED:
            sums[key] += row[key]
    total = {key: sum(sums[key] for sums in parts.values()) for key in _COUNTED}
    lines = [_counted_line(name, sums) for name, sums in [*parts.items(), ("all", total)]]
    return Section(
        title="Accounting by layer",
        blocks=[
            Text(text=note),
            Picture(
                name="accounting",
                caption="Storage and operations by part of the model.",
                svg=svg_of(figure),
            ),
            Table(
                head=["part", "storage", "multiplies", "adds", "other", "operations"],
                rows=lines,
                strong=len(lines) - 1,
            ),
        ],
    )


def environment_section() -> Section:
    """Show the date, the versions and the machine."""
    return Section(
        title="Environment",
        blocks=[
            Text(text="The date of this page, and the software and machine that made it."),
            Table(head=["what", "here"], rows=environment(), texts=2),
        ],
    )


def commands_section(commands: Sequence[str]) -> Section:
    """Show the commands to repeat it."""
    return Section(title="Commands to repeat it", blocks=[Code(text="\n".join(commands))])


_COUNTED = ("storage", "multiplies", "adds", "other")


def _counted_line(name: str, sums: Mapping[str, float]) -> list[str]:
    operations = sums["multiplies"] + sums["adds"] + sums["other"]
    return [name, *(f"{sums[key]:,.0f}" for key in _COUNTED), f"{operations:,.0f}"]


def million(value: float) -> str:
    """Return a count in millions, or in full if it is small."""
    return shown("storage", value)
