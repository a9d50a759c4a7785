"""`micronet reproduce`: the paper's tables and figures, its numbers beside ours."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from micronet_lm.cli import parsers
from micronet_lm.cli.output import make_table, print_report, tell
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.cli.run_tables import plan_shown
from micronet_lm.errors import UsageError
from micronet_lm.report.tables import CACHE_FIGURES, SCALES, table_names

if TYPE_CHECKING:
    from micronet_lm.report.reproduction import Reproduction

_TABLES = ", ".join(name for name in table_names() if name != "pipeline")

_EXAMPLE = f"""examples:
  micronet reproduce context --scale wikitext-2 --from data/wikitext-2.zip
  micronet reproduce compression --scale wikitext-2 --corpus data/wikitext-2 --dry-run
  micronet reproduce hebbian --scale demo
  micronet reproduce cache --scale paper --executor slurm --partition gpu
  micronet reproduce pipeline --scale demo
  micronet reproduce cache-gaps runs/small runs/cache-1000 runs/cache --out figures

tables   {_TABLES}
figures  pipeline      every stage's parameters, operations, perplexity and time
         cache-tokens  where the loss differs between runs, by a word's rank in frequency
         cache-gaps    the same by the distance to the word's previous occurrence (section 5.2)

What a table needs is trained in DIR, side by side where there is room, and what is finished there
is not run again, whichever table needed it first. What is counted without training (parameters,
operations, score) is always at the paper's scale. --dry-run trains nothing: it prints the plan with
its cost, and the table as far as it is known. The cache figures also take runs that are there
already: each but the last is compared with the last. Any key of the recipes can be set as
--section.key VALUE, for all of them alike.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "reproduce",
        _run,
        help="make a table or figure of the paper, its numbers beside ours",
        description="Make a table or figure of the paper, its numbers beside ours.",
        epilog=_EXAMPLE,
        usage="micronet reproduce TABLE|FIGURE [RUN ...] [--scale SCALE] [options]",
        keys=True,
    )
    choices = [*table_names(), *CACHE_FIGURES]
    parser.add_argument("what", choices=choices, metavar="TABLE|FIGURE", help="see below")
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN", help="for cache figures")
    parsers.add_choice(
        parser, "--scale", SCALES, "what our own numbers are measured on", default="wikitext-2"
    )
    parsers.add_folder(
        parser, "--out", "folder to write (default: runs/reproduce/SCALE, or figures)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="train nothing; show what it would cost"
    )
    parsers.add_choice(parser, "--executor", ["local", "slurm"], "where trainings run")
    parsers.add_number(
        parser, "--jobs", type=parsers.whole(1), help="jobs at a time (default: as many as fit)"
    )
    parsers.add_threads(parser, "threads per job")
    parser.add_argument("--partition", metavar="NAME", help="partition of the cluster")
    parsers.add_split(parser, "split of the cache figures")
    parsers.add_checkpoint(parser)
    parsers.add_corpus(parser, "a corpus that is already built")
    parsers.add_wikitext(parser)


def _run(arguments: Arguments) -> int:
    what = arguments.what
    if not arguments.runs:
        return _train_and_show(arguments)
    if what not in CACHE_FIGURES:
        raise UsageError(f"{what} trains what it needs; leave out {arguments.runs[0]}")
    keys = (f"--{key}" for key in arguments.overrides)
    parsers.refuse(
        arguments, "is for recipes, but the runs are already trained; leave it out", *keys
    )
    return _show_figure(arguments, arguments.runs, arguments.out or Path("figures"))


def _train_and_show(arguments: Arguments) -> int:
    from micronet_lm.pipeline import Sources, Workspace
    from micronet_lm.pipeline.pool import Pool, run_side_by_side
    from micronet_lm.report.reproduction import Reproduction
    from micronet_lm.report.tables import load_table

    what, scale = arguments.what, arguments.scale
    is_figure = what in CACHE_FIGURES
    out = arguments.out or Path("runs") / "reproduce" / scale
    workspace = Workspace(out, shared=True)
    sources = Sources(from_path=arguments.from_path, corpus=arguments.corpus)
    table = load_table("cache" if is_figure else what)
    made = Reproduction(table, scale, workspace, sources=sources, overrides=arguments.overrides)
    targets = made.compared() if is_figure else made.targets()
    if arguments.dry_run:
        plan = made.estimate(targets, tell)
        shown = chain(plan_shown(str(out), plan), () if is_figure else _shown(made))
        more = {"plan": plan} if plan else {}
        return print_report({**made.as_json(), **more}, shown, as_json=arguments.json)
    pool = Pool(
        executor=arguments.executor,
        jobs=arguments.jobs,
        threads=arguments.threads,
        partition=arguments.partition,
    )
    run_side_by_side(workspace, targets, pool, tell)
    if is_figure:
        return _show_figure(arguments, [workspace.folder(s) for s in targets], out / "figures")
    made.write(out)
    return print_report(made.as_json(), _shown(made), as_json=arguments.json)


def _shown(made: "Reproduction") -> Iterator[RenderableType]:
    from micronet_lm.report.table_text import headings, lines

    table = make_table(*headings(made), title=made.table.title, left=True)
    for line in lines(made):
        table.add_row(*map(Text, line))
    yield table
    yield f"Paper: {made.table.source}. Counted from the paper's recipes, zeros spread evenly."


def _show_figure(arguments: Arguments, runs: list[Path], out: Path) -> int:
    from micronet_lm.report.cache_comparison import compare_runs

    what = arguments.what
    data = compare_runs(
        what,
        runs,
        out,
        split=arguments.split,
        corpus=arguments.corpus,
        checkpoint=arguments.checkpoint,
    )
    return print_report(data, _figure_shown(data, out / what), as_json=arguments.json)


def _figure_shown(data: Mapping[str, Any], stem: Path) -> Iterator[str]:
    for number, difference in enumerate(data["differences"]):
        total = difference["cumulative"][-1] + data["new_words"][number]
        yield f"{difference['name']} - {difference['reference']}: {total:+.4f} nats per token"
    yield f"Written: {stem}.png, {stem}.json"
