"""`micronet search-cache`: the best θ and λ of a run's cache, for any size."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from micronet_lm.cli.output import print_json
from micronet_lm.cli.parsers import add_checkpoint, add_parser
from micronet_lm.corpus.splits import SPLITS
from micronet_lm.errors import UsageError
from micronet_lm.progress import bar

if TYPE_CHECKING:
    from micronet_lm.compression import Point

_EXAMPLE = """example:
  micronet search-cache runs/small --size 3000
  micronet evaluate runs/small/searched-3000 --split test

The result is a run folder: its search.json has every point that was visited.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "search-cache",
        help="find the best cache parameters of a trained model",
        description=(
            "Search for the cache's sharpness (theta) and share (lambda) that predict the "
            "validation split best, beginning at what the run has learned. The size may differ "
            "from the one trained with, and a run without a cache gets one."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("target", type=Path, metavar="RUN", help="folder of a training run")
    parser.add_argument(
        "--size", type=int, default=3000, metavar="N", help="size of the cache (default: 3000)"
    )
    parser.add_argument(
        "--ramp",
        type=int,
        metavar="N",
        help="activations with which the cache gets all of its share; with fewer it gets as much "
        "less, which short texts need; 0, the paper's way, is all at once (default: the run's own)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where the result goes (RUN/searched-N)"
    )
    parser.add_argument(
        "--split", choices=SPLITS, default="valid", help="which text (default: %(default)s)"
    )
    add_checkpoint(parser)
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where the corpus is now")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    size = arguments.size
    if size < 1:
        raise UsageError(f"--size {size} must be at least 1 activation")
    if arguments.ramp is not None and not 0 <= arguments.ramp <= size:
        raise UsageError(f"--ramp {arguments.ramp} must be from 0 to the cache's size, {size}")

    from micronet_lm.compression import Point, Surface, search_cache, write_searched_run
    from micronet_lm.training import Run, perplexity

    run = Run.open(arguments.target)
    out = arguments.out or run.path / f"searched-{size}"
    Run(out).check_place(run)
    corpus = run.corpus(arguments.corpus)
    ids = corpus.split(arguments.split)
    model = run.model(arguments.checkpoint)
    with bar(f"Reading {arguments.split}", total=len(ids) - 1, unit="tokens") as advance:
        surface = Surface(model, ids, advance=advance)
    search = search_cache(model, surface, size=size, ramp=arguments.ramp, tell=_tell)
    report = write_searched_run(run, arguments.checkpoint, corpus, arguments.split, search, out)
    if arguments.json:
        print_json({**report, "out": str(out)})
        return 0
    own = model.cache
    table = Table(box=None, header_style="bold", title=f"{run.path}, {arguments.split} split")
    for column in ("", "cache", "theta", "lambda", "perplexity"):
        table.add_column(column, justify="left" if not column else "right")
    if own is None:
        table.add_row("before", "none", "", "", f"{perplexity(search.before):,.2f}")
    else:
        trained = Point(theta=own.theta.item(), lam=own.lam.item(), loss=search.before)
        table.add_row("before", *_cells(own.size, trained))
    if own is None or own.size != size:
        what = "with a cache" if own is None else "another size"
        table.add_row(what, *_cells(size, search.start))
    table.add_row("after the search", *_cells(size, search.found), style="bold")
    console = Console()
    console.print(table)
    console.print(
        f"{len(search.points)} points in search.json. Next: micronet evaluate {out} --split test",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def _cells(size: int, point: "Point") -> list[str]:
    return [f"{size:,}", f"{point.theta:.5f}", f"{point.lam:.4f}", f"{point.perplexity:,.2f}"]


def _tell(point: "Point") -> None:
    sys.stderr.write(
        f"theta {point.theta:.5f}: best with lambda {point.lam:.4f}, "
        f"perplexity {point.perplexity:,.3f}\n"
    )
