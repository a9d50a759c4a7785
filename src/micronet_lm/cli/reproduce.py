"""`micronet reproduce`: the paper's tables and figures, its numbers beside ours."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table as ShownTable
from rich.text import Text

from micronet_lm.cli.cache_figures import CACHE_FIGURES, draw_cache_figure, print_cache_figure
from micronet_lm.cli.output import print_json, tell
from micronet_lm.cli.parsers import add_checkpoint, add_parser
from micronet_lm.cli.run_tables import print_plan
from micronet_lm.corpus.splits import SPLITS
from micronet_lm.errors import UsageError
from micronet_lm.files import write_text

if TYPE_CHECKING:
    from micronet_lm.pipeline import Sources, Stage, Workspace
    from micronet_lm.report.reproduction import Reproduction

WHAT = ("micronet", "compression", "sota", "context", "cache", "hebbian", "cache-search")
"""The tables."""


_EXAMPLE = """examples:
  micronet reproduce context --scale wikitext-2 --from data/wikitext-2.zip
  micronet reproduce compression --scale wikitext-2 --corpus data/wikitext-2 --dry-run
  micronet reproduce hebbian --scale demo
  micronet reproduce cache --scale paper --executor slurm --partition gpu
  micronet reproduce pipeline --scale demo
  micronet reproduce cache-gaps runs/small runs/cache-1000 runs/cache --out figures

tables   micronet, compression, sota, context, cache, hebbian, cache-search
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


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "reproduce",
        help="make a table or figure of the paper, its numbers beside ours",
        description="Make a table or figure of the paper, its numbers beside ours.",
        epilog=_EXAMPLE,
        usage="micronet reproduce TABLE|FIGURE [RUN ...] [--scale SCALE] [options]",
    )
    choices = [*WHAT, "pipeline", *CACHE_FIGURES]
    parser.add_argument("what", choices=choices, metavar="TABLE|FIGURE", help="see below")
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN", help="for cache figures")
    parser.add_argument(
        "--scale",
        choices=["paper", "wikitext-2", "demo"],
        default="wikitext-2",
        help="what our own numbers are measured on (default: %(default)s)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="(default: runs/reproduce/SCALE, or figures)"
    )
    parser.add_argument("--dry-run", action="store_true", help="train nothing; tell what it costs")
    parser.add_argument(
        "--executor",
        choices=["local", "slurm"],
        default="local",
        help="where trainings run (default: %(default)s)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="at a time (default: as fit)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of a job (default: 1)")
    parser.add_argument("--partition", metavar="NAME", help="of the cluster")
    parser.add_argument(
        "--split", choices=SPLITS, default="valid", help="of cache figures (default: %(default)s)"
    )
    add_checkpoint(parser)
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="a corpus that is built already")
    parser.add_argument(
        "--from", type=Path, metavar="PATH", dest="from_path", help="where WikiText already lies"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run, overrides={})


def _run(arguments: argparse.Namespace) -> int:
    what = arguments.what
    if arguments.runs and what not in CACHE_FIGURES:
        raise UsageError(f"{what} trains what it needs; leave out {arguments.runs[0]}")
    for name in ("jobs", "threads"):
        if (value := getattr(arguments, name)) is not None and value < 1:
            raise UsageError(f"--{name} {value} must be at least 1")
    if arguments.runs:
        if arguments.overrides:
            raise UsageError("the runs are trained already; leave out the keys of recipes")
        out = arguments.out or Path("figures")
        return _show_figure(what, arguments.runs, out, arguments)
    return _train_and_show(arguments)


def _train_and_show(arguments: argparse.Namespace) -> int:
    from micronet_lm.pipeline import Sources, Workspace
    from micronet_lm.report.reproduction import Reproduction
    from micronet_lm.report.tables import load_table

    what, scale = arguments.what, arguments.scale
    out = arguments.out or Path("runs") / "reproduce" / scale
    workspace = Workspace(out, shared=True)
    sources = Sources(from_path=arguments.from_path, corpus=arguments.corpus)
    name = "cache" if what in CACHE_FIGURES else what
    made = Reproduction(
        load_table(name), scale, workspace, sources=sources, overrides=arguments.overrides
    )
    targets = _cache_runs(made) if what in CACHE_FIGURES else made.targets()
    if arguments.dry_run:
        plan = _plan(made, workspace, sources, targets, as_json=arguments.json)
    else:
        _train(workspace, targets, arguments)
        if what in CACHE_FIGURES:
            folders = [workspace.folder(stage) for stage in targets]
            return _show_figure(what, folders, out / "figures", arguments)
        _write(made, out)
        plan = None
    if arguments.json:
        print_json({**made.as_json(), **({"plan": plan} if plan else {})})
        return 0
    if what not in CACHE_FIGURES:
        _print(made)
    return 0


def _cache_runs(made: "Reproduction") -> "list[Stage]":
    """The runs that the cache figures compare: no cache, a small and a large one."""
    rows = [row for row in made.table.rows if "larg" not in row.label]
    column = made.table.columns[-1]
    presets = [row.recipe(column, made.scale) for row in rows]
    return [made.stages(preset)["student"] for preset in presets if preset]


def _train(workspace: "Workspace", targets: "list[Stage]", arguments: argparse.Namespace) -> None:
    from micronet_lm.pipeline.pool import Pool, room_for_jobs, run_side_by_side

    pool = Pool(
        executor=arguments.executor,
        jobs=arguments.jobs or (64 if arguments.executor == "slurm" else room_for_jobs()),
        threads=arguments.threads,
        partition=arguments.partition,
    )
    run_side_by_side(workspace, targets, pool, tell)


def _plan(
    made: "Reproduction",
    workspace: "Workspace",
    sources: "Sources",
    targets: "list[Stage]",
    *,
    as_json: bool,
) -> list[dict[str, Any]]:
    """Estimate every stage that is still missing, each by a recipe that asks for it."""
    from micronet_lm.pipeline import plan, take_apart
    from micronet_lm.pipeline.corpus_size import corpus_size
    from micronet_lm.pipeline.costs import Costs
    from micronet_lm.pipeline.estimates import estimated

    costs: dict[str, Costs] = {}
    facts = None
    for preset in made.recipes():
        recipes = take_apart(preset, made.overrides)
        stages = made.stages(preset)
        if facts is None:
            facts = corpus_size(recipes.corpus, workspace.folder(stages["corpus"]), sources.corpus)
        for stage in stages.values():
            costs.setdefault(stage.fingerprint, Costs(recipes, facts))
    rows = []
    for planned in plan(workspace, targets):
        rows += estimated(workspace, [planned], costs[planned.stage.fingerprint], tell)
    if not as_json:
        print_plan(str(workspace.root), rows, None)
    return rows


def _write(made: "Reproduction", out: Path) -> None:
    """Keep the table beside what it was made from; the pipeline is a figure as well."""
    from micronet_lm.report.stack import stack_svg
    from micronet_lm.report.table_text import markdown

    if made.table.name == "pipeline":
        write_text(out / "figures" / "pipeline.svg", stack_svg(made.stacks()))

    stem = out / "tables" / made.table.name
    write_text(stem.with_suffix(".md"), markdown(made))
    write_text(stem.with_suffix(".json"), json.dumps(made.as_json(), indent=1) + "\n")


def _print(made: "Reproduction") -> None:
    from micronet_lm.report.table_text import headings, lines

    table = ShownTable(box=None, header_style="bold", title=made.table.title, title_justify="left")
    for number, heading in enumerate(headings(made)):
        table.add_column(heading, justify="right" if number else "left")
    for line in lines(made):
        table.add_row(*map(Text, line))
    console = Console()
    needed = console.measure(table, options=console.options.update(width=400)).maximum
    console = Console(width=max(console.width, min(needed, 200)))
    console.print(table)
    console.print(
        f"Paper: {made.table.source}. Counted from the paper's recipes, zeros spread evenly.",
        highlight=False,
        soft_wrap=True,
    )


def _show_figure(what: str, runs: list[Path], out: Path, arguments: argparse.Namespace) -> int:
    data = draw_cache_figure(what, runs, out, arguments)
    if arguments.json:
        print_json(data)
    else:
        print_cache_figure(data, out / what)
    return 0
