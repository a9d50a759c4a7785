"""`micronet sensitivity`: how much each matrix of a run can be pruned."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType

from micronet_lm.cli import parsers
from micronet_lm.cli.output import make_table, print_report
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.cli.runs import in_each_process
from micronet_lm.machine import leads
from micronet_lm.progress import bar

if TYPE_CHECKING:
    from micronet_lm.compression.sensitivity import Sensitivity
    from micronet_lm.training import Run

_EXAMPLE = """examples:
  micronet sensitivity runs/small
  micronet sensitivity runs/small --tokens 50000 --grid 0.2,0.4,0.6,0.8,0.95
  torchrun --nproc-per-node 2 -m micronet_lm sensitivity runs/small

The folder (RUN/sensitivity) gets the points as they come, the finished table, and a figure. The
same command resumes an analysis that was interrupted.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "sensitivity",
        _run,
        help="measure how pruning each matrix alone hurts",
        description=(
            "Measure, for every weight matrix, the perplexity as a function of that matrix's "
            "sparsity, with all others unchanged. 'micronet prune' divides a model's sparsity "
            "by it."
        ),
        epilog=_EXAMPLE,
    )
    parsers.add_run(parser)
    parsers.add_folder(parser, "--out", "folder to write (default: RUN/sensitivity)")
    parsers.add_number(
        parser,
        "--tokens",
        type=parsers.whole(2),
        default=20_000,
        help="first tokens of the validation split to measure on",
    )
    parser.add_argument(
        "--grid",
        type=parsers.listed(parsers.real("(0, 1]")),
        metavar="S,S,...",
        help="sparsities to try (default: 0.1 to 0.9 in tenths)",
    )
    parsers.add_choice(
        parser, "--weights", ["matrices", "all"], "what may be pruned, as in prune.weights"
    )
    parsers.add_corpus(parser)


@in_each_process
def _run(arguments: Arguments) -> int:
    from micronet_lm.compression.sensitivity import GRID, analyse_run
    from micronet_lm.report.sensitivity_figure import draw_sensitivity
    from micronet_lm.training import Run

    run = Run.open(arguments.target)
    out = arguments.out or run.path / "sensitivity"
    ids = run.corpus(arguments.corpus).split("valid")[: arguments.tokens]
    grid = GRID if arguments.grid is None else tuple(sorted(set(arguments.grid)))
    with bar(f"Analysing {run.path}", total=None, unit="points") as advance:
        result = analyse_run(run, ids, out, grid=grid, weights=arguments.weights, advance=advance)
    if not leads():
        return 0
    draw_sensitivity(result, out / "sensitivity.png", subject=str(run.path))
    report = {**result.as_json(), "run": str(run.path)}
    return print_report(report, _shown(run, out, result, len(ids)), as_json=arguments.json)


def _shown(run: "Run", out: Path, result: "Sensitivity", tokens: int) -> Iterator[RenderableType]:
    from micronet_lm.training import perplexity

    base = perplexity(result.base)
    title = f"{run.path}, first {tokens:,} tokens of valid: perplexity {base:,.2f} as it is"
    grid = next(iter(result.losses.values()))
    table = make_table("matrix", "weights", *(f"{own:g}" for own in grid), title=title)
    for name, points in result.losses.items():
        cells = [f"{perplexity(loss):,.1f}" for loss in points.values()]
        table.add_row(name.removesuffix(".weight"), f"{result.sizes[name]:,}", *cells)
    yield table
    yield f"Written: {out}/. Next: micronet prune {run.path} --sparsity 0.358 --out DIR"
