"""`micronet search-cache`: the best θ and λ of a run's cache, for any size."""

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table

from micronet_lm.cli import parsers
from micronet_lm.cli.output import make_table, print_report, tell
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.errors import UsageError
from micronet_lm.progress import bar

if TYPE_CHECKING:
    from micronet_lm.compression import Point, Search
    from micronet_lm.model import LanguageModel

_EXAMPLE = """example:
  micronet search-cache runs/small --size 3000
  micronet evaluate runs/small/searched-3000 --split test

The result is a run folder: its search.json has every point that was visited.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "search-cache",
        _run,
        help="find the best cache parameters of a trained model",
        description=(
            "Search for the cache's sharpness (theta) and share (lambda) that predict the "
            "validation split best, beginning at what the run has learned. The size may differ "
            "from the one trained with, and a run without a cache gets one."
        ),
        epilog=_EXAMPLE,
    )
    parsers.add_run(parser)
    parsers.add_number(
        parser, "--size", type=parsers.whole(1), default=3000, help="size of the cache"
    )
    parsers.add_number(
        parser,
        "--ramp",
        type=parsers.whole(0),
        help="activations with which the cache gets all of its share; with fewer it gets as much "
        "less, which short texts need; 0, the paper's way, is all at once (default: the run's own)",
    )
    parsers.add_number(
        parser,
        "--fade",
        type=parsers.whole(0),
        help="tokens in which the vote of an activation shrinks to 1/e, so that recent words count "
        "more, which large caches need; 0, the paper's way, lets none shrink (default: "
        "the run's own)",
    )
    parser.add_argument(
        "--no-confirm",
        action="store_false",
        dest="confirm",
        help="the paper's way: search on the whole split and keep what is found; without it the "
        "first half is searched, and the trained values stay where the second half says so",
    )
    parser.add_argument(
        "--temperature",
        action="store_true",
        help="first search for a temperature of the softmax and fold it into the weights, for "
        "models that read a small text many times",
    )
    parsers.add_folder(parser, "--out", "folder to write (default: RUN/searched-SIZE)")
    parsers.add_split(parser, "split to search on")
    parsers.add_checkpoint(parser)
    parsers.add_corpus(parser)


def _run(arguments: Arguments) -> int:
    size, ramp, split = arguments.size, arguments.ramp, arguments.split
    if ramp is not None and ramp > size:
        raise UsageError(f"--ramp must be at most the cache's size {size}, got {ramp}")

    from micronet_lm.compression import Surface, search_cache, write_searched_run
    from micronet_lm.compression.searched_run import confirmation_sentence
    from micronet_lm.compression.temperature import fold_temperature, search_temperature
    from micronet_lm.training import Run

    run = Run.open(arguments.target)
    out = arguments.out or run.path / f"searched-{size}"
    Run(out).check_place(run)
    corpus = run.corpus(arguments.corpus)
    ids = corpus.split(split)
    model = run.model(arguments.checkpoint)
    with bar(f"Reading {split}", total=len(ids) - 1, unit="tokens") as advance:
        surface = Surface(model, ids, advance=advance)
    temperature = 1.0
    if arguments.temperature:
        temperature = search_temperature(model, surface, confirm=arguments.confirm)
        tell(f"temperature {temperature:.3f}")
        fold_temperature(model, temperature)
        surface = Surface(model, ids)
    search = search_cache(
        model,
        surface,
        size=size,
        ramp=ramp,
        fade=arguments.fade,
        confirm=arguments.confirm,
        tell=_tell,
    )
    report = write_searched_run(
        run, arguments.checkpoint, corpus, split, search, out, temperature=temperature
    )
    shown: list[RenderableType] = [
        _table(model, search, size, f"{run.path}, {split} split"),
        *filter(None, [confirmation_sentence(report)]),
        f"{len(search.points)} points in search.json. Next: micronet evaluate {out} --split test",
    ]
    return print_report({**report, "out": str(out)}, shown, as_json=arguments.json)


def _table(model: "LanguageModel", search: "Search", size: int, title: str) -> Table:
    from micronet_lm.compression import Point
    from micronet_lm.training import perplexity

    table, own = make_table("", "cache", "theta", "lambda", "perplexity", title=title), model.cache
    if own is None:
        table.add_row("before", "none", "", "", f"{perplexity(search.before):,.2f}")
    else:
        trained = Point(theta=own.theta.item(), lam=own.lam.item(), loss=search.before)
        table.add_row("before", *_cells(own.size, trained))
    if own is None or own.size != size:
        what = "with a cache" if own is None else "another size"
        table.add_row(what, *_cells(size, search.start))
    if search.kept is None:
        table.add_row("after the search", "none", "", "", f"{perplexity(search.before):,.2f}")
    else:
        table.add_row("after the search", *_cells(search.kept_size, search.kept), style="bold")
    return table


def _cells(size: int, point: "Point") -> list[str]:
    return [f"{size:,}", f"{point.theta:.5f}", f"{point.lam:.4f}", f"{point.perplexity:,.2f}"]


def _tell(point: "Point") -> None:
    tell(
        f"theta {point.theta:.5f}: best with lambda {point.lam:.4f}, "
        f"perplexity {point.perplexity:,.3f}"
    )
