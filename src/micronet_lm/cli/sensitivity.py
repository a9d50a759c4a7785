"""`micronet sensitivity`: how much each matrix of a run can be pruned."""

import argparse
import math
from pathlib import Path

from rich.console import Console
from rich.table import Table

from micronet_lm.cli.output import print_json
from micronet_lm.cli.parsers import add_parser
from micronet_lm.cli.runs import leads
from micronet_lm.errors import UsageError
from micronet_lm.progress import bar

_EXAMPLE = """examples:
  micronet sensitivity runs/small
  micronet sensitivity runs/small --tokens 50000 --grid 0.2,0.4,0.6,0.8,0.95
  torchrun --nproc-per-node 2 -m micronet_lm sensitivity runs/small

The folder (RUN/sensitivity) gets the points as they come, the finished table, and a figure. The
same command goes on with an analysis that was interrupted.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "sensitivity",
        help="measure how pruning each matrix alone hurts",
        description=(
            "For every weight matrix, the perplexity as a function of that matrix's sparsity, "
            "with all others untouched. 'micronet prune' shares out a model's sparsity by it."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("target", type=Path, metavar="RUN", help="folder of a training run")
    parser.add_argument("--out", type=Path, metavar="DIR", help="(default: RUN/sensitivity)")
    parser.add_argument(
        "--tokens",
        type=int,
        default=20_000,
        metavar="N",
        help="first tokens of the validation split to measure on (default: %(default)s)",
    )
    parser.add_argument(
        "--grid", metavar="S,S,...", help="sparsities to try (default: 0.1 to 0.9 in tenths)"
    )
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where the corpus is now")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.tokens < 2:
        raise UsageError(f"--tokens {arguments.tokens} must be at least 2")
    given = None if arguments.grid is None else _grid(arguments.grid)

    from micronet_lm.compression.sensitivity import GRID, analyse_run
    from micronet_lm.report.sensitivity_figure import draw_sensitivity
    from micronet_lm.training import Run, perplexity

    run = Run.open(arguments.target)
    out = arguments.out or run.path / "sensitivity"
    ids = run.corpus(arguments.corpus).split("valid")[: arguments.tokens]
    grid = given or GRID
    with bar(f"Analysing {run.path}", total=None, unit="points") as advance:
        result = analyse_run(run, ids, out, grid=grid, advance=advance)
    if not leads():
        return 0
    draw_sensitivity(result, out / "sensitivity.png", subject=str(run.path))
    if arguments.json:
        print_json({**result.as_json(), "run": str(run.path)})
        return 0
    base = perplexity(result.base)
    table = Table(
        box=None,
        header_style="bold",
        title=f"{run.path}, first {len(ids):,} tokens of valid: perplexity {base:,.2f} as it is",
    )
    for column in ("matrix", "weights", *(f"{sparsity:g}" for sparsity in grid)):
        table.add_column(column, justify="left" if column == "matrix" else "right")
    for name, points in result.losses.items():
        cells = [f"{perplexity(loss):,.1f}" for loss in points.values()]
        table.add_row(name.removesuffix(".weight"), f"{result.sizes[name]:,}", *cells)
    console = Console(width=max(100, Console().width))
    console.print(table)
    console.print(f"Written: {out}/. Next: micronet prune {run.path} --sparsity 0.358 --out DIR")
    return 0


def _grid(text: str) -> tuple[float, ...]:
    try:
        grid = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        raise UsageError(f"--grid {text} must be numbers with commas between them") from None
    if not all(math.isfinite(value) and 0 < value <= 1 for value in grid):
        raise UsageError(f"--grid {text} must hold sparsities above 0 and up to 1")
    return grid
