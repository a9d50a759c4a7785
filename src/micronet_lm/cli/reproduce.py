"""`micronet reproduce`: the paper's tables and figures, its numbers beside ours."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from micronet_lm.cli import cluster, parsers
from micronet_lm.cli.cluster import add_cluster, asked_pool, wants_estimate
from micronet_lm.cli.output import make_table, print_report, tell
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.cli.plan_advice import Commands
from micronet_lm.cli.run_tables import plan_shown
from micronet_lm.errors import MicronetError, UsageError
from micronet_lm.report.tables import CACHE_FIGURES, SCALES, table_names

if TYPE_CHECKING:
    from micronet_lm.pipeline import Stage, Workspace
    from micronet_lm.report.reproduction import Reproduction

_TABLES = ", ".join(name for name in table_names() if name != "pipeline")

_EXAMPLE = f"""examples:
  micronet reproduce all --scale wikitext-2 --from data/wikitext-2.zip --records docs/results/paper
  micronet reproduce context --scale wikitext-2 --from data/wikitext-2.zip
  micronet reproduce compression --scale wikitext-2 --corpus data/wikitext-2 --dry-run
  micronet reproduce hebbian --scale demo
  micronet reproduce cache --scale paper --executor slurm --partition gpu --gpus 1
  micronet reproduce pipeline --scale demo
  micronet reproduce cache-gaps runs/small runs/cache-1000 runs/cache --out figures

all      every table and figure, and a page with a verdict on each claim of the paper
tables   {_TABLES}
figures  pipeline      every stage's parameters, operations, perplexity and time
         cache-tokens  where the loss differs between runs, by a word's rank in frequency
         cache-gaps    the same by the distance to the word's previous occurrence (section 5.2)

The models of a table are trained in DIR, several at a time if there is room. Stages that are
complete there are not run again, whichever table needed them first. Numbers that are counted
without training (parameters, operations, score) are always at the paper's scale. --dry-run trains
nothing: it prints the plan with its cost, and the numbers of the table that are known. The cache
figures also take existing runs: each but the last is compared with the last. Any key of the recipes
can be set with --section.key VALUE, which applies to all of them.

{cluster.HELP.strip()}

--records DIR is a folder of small records of finished stages: what has one with the same recipe and
text is not trained again, and what is finished here gets one. For 'all' the page is written beside
it, as DIR.md. --only-records trains nothing: it shows what is known, and writes the page.
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
    choices = [*table_names(), *CACHE_FIGURES, "all"]
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
    parsers.add_folder(parser, "--records", "records of stages that were finished elsewhere")
    parser.add_argument(
        "--only-records", action="store_true", help="train nothing; show what is known"
    )
    add_cluster(parser)
    parsers.add_split(parser, "split of the cache figures")
    parsers.add_checkpoint(parser)
    parsers.add_corpus(parser, "a corpus that is already built")
    parsers.add_wikitext(parser)


def _run(arguments: Arguments) -> int:
    what = arguments.what
    if not arguments.runs:
        return _make_everything(arguments) if what == "all" else _train_and_show(arguments)
    if what not in CACHE_FIGURES:
        raise UsageError(f"{what} trains what it needs; leave out {arguments.runs[0]}")
    keys = (f"--{key}" for key in arguments.overrides)
    parsers.refuse(
        arguments, "is for recipes, but the runs are already trained; leave it out", *keys
    )
    return _show_figure(arguments, arguments.runs, arguments.out or Path("figures"))


def _train_and_show(arguments: Arguments) -> int:
    from micronet_lm.pipeline import Sources, State, Workspace
    from micronet_lm.pipeline.estimates import stage_costs
    from micronet_lm.pipeline.pool import run_side_by_side
    from micronet_lm.pipeline.speed import measured_device
    from micronet_lm.pipeline.stage import in_order
    from micronet_lm.report.reproduction import Reproduction
    from micronet_lm.report.tables import load_table

    pool = asked_pool(arguments)
    what, scale = arguments.what, arguments.scale
    is_figure = what in CACHE_FIGURES
    out = arguments.out or Path("runs") / "reproduce" / scale
    workspace = Workspace(out, shared=True)
    sources = Sources(from_path=arguments.from_path, corpus=arguments.corpus)
    table = load_table("cache" if is_figure else what)
    made = Reproduction(table, scale, workspace, sources=sources, overrides=arguments.overrides)
    targets = made.compared() if is_figure else made.targets()
    if arguments.records and not arguments.dry_run:
        _adopt(arguments, workspace, targets)
        if not is_figure:  # a figure needs the runs themselves
            targets = [stage for stage in targets if workspace.state(stage) is not State.GONE]
    if arguments.dry_run:
        plan = made.estimate(targets, tell)
        words = ["micronet", "reproduce", what, "--scale", scale, "--out", str(out)]
        commands = Commands(plan=words)
        shown = chain(
            plan_shown(str(out), plan, measured_device(), commands=commands),
            () if is_figure else _shown(made),
        )
        more = {"plan": plan} if plan else {}
        return print_report({**made.as_json(), **more}, shown, as_json=arguments.json)
    if arguments.only_records:
        if is_figure:
            raise UsageError(f"{what} is drawn from runs; leave out --only-records")
        return print_report(made.as_json(), _shown(made), as_json=arguments.json)
    records = arguments.records
    costs = {}
    if wants_estimate(pool):
        costs = stage_costs(workspace, targets, made.estimate(targets, tell))
    run_side_by_side(
        workspace,
        targets,
        pool,
        tell,
        lambda stage: records and workspace.give(stage, records),
        costs,
    )
    if records:  # what was complete before
        for stage in in_order(made.targets()):
            workspace.give(stage, records)
    if is_figure:
        return _show_figure(arguments, [workspace.folder(s) for s in targets], out / "figures")
    made.write(out)
    return print_report(made.as_json(), _shown(made), as_json=arguments.json)


def _make_everything(arguments: Arguments) -> int:
    from micronet_lm.files import write_text
    from micronet_lm.pipeline import Sources, Workspace
    from micronet_lm.pipeline.pool import run_side_by_side
    from micronet_lm.report.everything import Everything
    from micronet_lm.report.paper_page import page
    from micronet_lm.report.paper_pictures import write_pictures

    pool, scale = asked_pool(arguments), arguments.scale
    out = arguments.out or Path("runs") / "reproduce" / scale
    workspace = Workspace(out, shared=True)
    sources = Sources(from_path=arguments.from_path, corpus=arguments.corpus)
    made = Everything(scale, workspace, sources=sources, overrides=arguments.overrides)
    records = arguments.records
    if records and not arguments.dry_run:
        _adopt(arguments, workspace, made.targets())
    if arguments.dry_run:
        done, todo = made.trainings()
        said = {"done": len(done), "to do": len(todo), "seconds": made.seconds()}
        line = f"{len(done)} of {len(done) + len(todo)} results are there; the rest is trained."
        return print_report(said, [line], as_json=arguments.json)
    failed: MicronetError | None = None
    if not arguments.only_records:
        try:
            run_side_by_side(
                workspace,
                made.to_train(),
                pool,
                tell,
                lambda stage: records and made.give_one(stage, records),
            )
        except MicronetError as error:  # what is finished is kept and shown
            failed = error
    place = Path(f"{records}.md") if records else out / "paper.md"
    if records:
        made.give(records)
    for table in made.tables.values():
        table.write(out)
    more = f" --records {records}" if records else ""
    command = f"micronet reproduce all --scale {scale} --from wikitext-2-v1.zip{more}"
    folder = records.name if records else "stages"
    pictures = write_pictures(made, place)
    write_text(place, page(made, records=folder, command=command, pictures=pictures))
    if failed is not None:
        raise failed
    report = {"page": str(place), "tables": {n: t.as_json() for n, t in made.tables.items()}}
    return print_report(report, [f"Written: {place}"], as_json=arguments.json)


def _adopt(arguments: Arguments, workspace: "Workspace", targets: "Sequence[Stage]") -> None:
    """Take over the records of finished stages, unless they are of another text."""
    from micronet_lm.pipeline.records import adopt_records, told_of_records

    said = adopt_records(
        workspace,
        targets,
        arguments.records,
        build=bool(arguments.from_path or arguments.corpus) and not arguments.dry_run,
    )
    tell(told_of_records(said, arguments.records))


def _shown(made: "Reproduction") -> Iterator[RenderableType]:
    from micronet_lm.report.table_text import grids

    title: str | None = made.table.title
    for head, *lines in grids(made):
        table = make_table(*head, title=title, left=True)
        for line in lines:
            table.add_row(*map(Text, line))
        yield table
        title = None
    yield (
        f"Paper: {made.table.source}. Counted from the paper's recipes, zeros as in the authors' "
        f"configurations; ours at scale {made.scale}."
    )
    yield from made.table.notes_at(made.scale)


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
