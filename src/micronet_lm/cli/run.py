"""`micronet run`: carry out a whole recipe, from its text to the report, in one command."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micronet_lm.cli.cluster import HELP, add_cluster, asked_pool, wants_estimate
from micronet_lm.cli.output import print_report, tell
from micronet_lm.cli.own_text import check_not_own, is_text, own_folder, own_recipes
from micronet_lm.cli.parsers import (
    Arguments,
    Verbs,
    add_corpus,
    add_folder,
    add_number,
    add_verb,
    add_wikitext,
    real,
    refuse,
)
from micronet_lm.cli.plan_advice import Commands
from micronet_lm.cli.run_tables import pipeline_shown, plan_shown
from micronet_lm.cli.runs import INTERRUPTED, default_folder, tell_scaled
from micronet_lm.config import describe_keys
from micronet_lm.errors import UsageError, install_extra

if TYPE_CHECKING:
    from micronet_lm.pipeline import Recipes, Sources

TEACHER = "teacher."
"""What the keys of the teacher's recipe begin with."""

_EXAMPLE = (
    """examples:
  micronet run demo
  micronet run mytext/ --out mine --minutes 10
  micronet run wikitext-2/micronet --out runs/wikitext-2 --from data/wikitext-2.zip
  micronet run wikitext-2/micronet --out runs/wikitext-2 --dry-run
  micronet run wikitext-2/micronet --out runs/wikitext-2 --search.cache_size 4000
  micronet run wikitext-2/micronet --out runs/wikitext-2 --take teacher=runs/teacher
  micronet run mine.yaml --out runs/mine --corpus data/mine --until prune
  micronet run wikitext-2/micronet --out runs/wikitext-2 --executor slurm --partition gpu --gpus 1

Of text of your own, a recipe is chosen for its amount and the time, and kept as OUT/own-text.yaml.

demo, wikitext-2 and paper are short for their whole pipelines (demo/micronet, ...).

Runs all stages that the recipe asks for, in order. What is complete and unchanged is skipped, what
was interrupted resumes bit-exactly, and what has changed is run again with everything after it;
what it replaces is moved aside as STAGE.old-XXXXXXXX. --dry-run shows what would be done, and
estimates what it costs from a short measurement on this machine.
"""
    + HELP
    + """

Any key of the recipe can be set as --section.key VALUE, the teacher's as --teacher.section.key:
"""
)


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "run",
        _run,
        help="go from text to a compressed model in one command",
        description=(
            "Run all stages of a recipe: corpus, teacher, soft labels, student, sensitivity, "
            "pruning, cache search, quantization, packing, accounting, report."
        ),
        epilog=_EXAMPLE + describe_keys(),
        usage=(
            "micronet run RECIPE|TEXT [--out DIR] [--minutes N] [--dry-run] [--json] "
            "[--section.key VALUE ...]"
        ),
        keys=True,
    )
    parser.add_argument(
        "recipe",
        metavar="RECIPE",
        help="a preset ('micronet presets'), a .yaml, or your own text: a file, folder or pattern",
    )
    add_number(
        parser,
        "--minutes",
        type=real("[1, 100000]"),
        default=10,
        help="time that a model of your own text may take",
    )
    add_folder(parser, "--out", "folder to write (default: runs/RECIPE)")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be done and what it would cost"
    )
    parser.add_argument("--until", metavar="STAGE", help="stop after this stage")
    add_corpus(parser, "a corpus that is already built")
    add_wikitext(parser)
    parser.add_argument(
        "--take",
        action="append",
        default=[],
        metavar="STAGE=RUN",
        help="use a copy of a run that was trained elsewhere with the same recipe",
    )
    add_cluster(parser)


def _run(arguments: Arguments) -> int:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "a pipeline is one process; train its large stages with torchrun -m micronet_lm train, "
            "and hand them over with --take STAGE=RUN"
        )

    from micronet_lm.pipeline import Interrupted, Workspace, run_stages, stages_of, take_apart
    from micronet_lm.pipeline.estimates import estimate_recipe, stage_costs
    from micronet_lm.pipeline.pool import run_side_by_side
    from micronet_lm.pipeline.recipes import whole_recipe
    from micronet_lm.pipeline.speed import measured_device
    from micronet_lm.pipeline.stages import MODELS, chosen_targets, with_job

    pool = asked_pool(arguments)
    if pool.executor == "local":
        refuse(
            arguments,
            "is for a cluster, where stages are jobs: add --executor slurm",
            *("--jobs", "--threads", "--cpus"),
        )
    root = arguments.out or Path("runs") / default_folder(arguments.recipe)
    if is_text(arguments.recipe):
        root = own_folder(arguments)
        recipes = own_recipes(arguments, root)
    else:
        recipes = take_apart(whole_recipe(arguments.recipe), arguments.overrides)
        refuse(arguments, "is for your own text; a recipe has its number of steps", "--minutes")
        check_not_own(arguments.recipe, root)
    tell_scaled(recipes.scaled)
    workspace, sources = Workspace(root), _sources(arguments, root)
    stages = stages_of(recipes, sources)
    if find_spec("matplotlib") is None:
        tell(f"There will be no report; what draws it: {install_extra('report')}")
    else:
        from micronet_lm.report.written import report_stage

        own = {k: v for k, v in arguments.overrides.items() if not k.startswith("cluster.")}
        setup = {"recipe": arguments.recipe, "overrides": own}
        stages["report"] = with_job(report_stage(stages, setup), recipes)
    targets = chosen_targets(stages, arguments.until)
    if arguments.dry_run:
        rows = estimate_recipe(workspace, recipes, sources, targets, tell)
        free = workspace.free_bytes()
        plan = {"out": str(root), "free": free, "stages": rows}
        commands = _commands(arguments, root, recipes)
        shown = plan_shown(str(root), rows, measured_device(), free, commands)
        return print_report(plan, shown, as_json=arguments.json)
    try:
        if pool.executor == "slurm":
            costs = {}
            if wants_estimate(pool):
                rows = estimate_recipe(workspace, recipes, sources, targets, tell)
                costs = stage_costs(workspace, targets, rows)
            run_side_by_side(workspace, targets, pool, tell, costs=costs)
        else:
            run_stages(workspace, targets, tell, in_children=arguments.is_program)
    except (Interrupted, KeyboardInterrupt) as stop:
        tell(f"Interrupted {stop}".rstrip() + "; the same command resumes.")
        return INTERRUPTED
    done = workspace.results(stages)
    for name in ("corpus", *reversed(MODELS)):  # of the models, only the last that was made
        if name in done and (warning := done[name].get("warning")):
            tell(f"warning: {warning}")
        if name in done and name != "corpus":
            break
    report = {"out": str(root), "stages": done}
    return print_report(report, pipeline_shown(root, done), as_json=arguments.json)


def _commands(arguments: Arguments, root: Path, recipes: "Recipes") -> Commands:
    """Return the commands that carry out a plan here, and its teacher elsewhere."""
    own = {"--out": root, "--corpus": arguments.corpus, "--from": arguments.from_path}
    given = [word for key, value in own.items() if value for word in (key, str(value))]
    given += [word for run in arguments.take for word in ("--take", run)]
    changed = _as_words(arguments.overrides)
    plan = ["micronet", "run", arguments.recipe, *given, *changed]
    if recipes.teacher is None or recipes.whole.distill is None:
        return Commands(plan=plan)
    name = str(recipes.whole.distill.teacher)
    its = {
        k.removeprefix(TEACHER): v
        for k, v in arguments.overrides.items()
        if k.startswith((TEACHER, "corpus."))
    }
    corpus = ["--corpus", str(arguments.corpus or root / "corpus")]
    return Commands(plan=plan, teacher=["train", name, *corpus, *_as_words(its)])


def _as_words(overrides: "Mapping[str, Any]") -> list[str]:
    """Return overrides as words of a command line."""
    words = []
    for key, value in overrides.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words += [f"--{key}", "none" if value is None else text]
    return words


def _sources(arguments: Arguments, root: Path) -> "Sources":
    """Return where things are that need not be made."""
    from micronet_lm.pipeline import Sources, linked_corpus

    runs = {}
    for word in arguments.take:
        name, _, place = word.partition("=")
        if not place:
            raise UsageError(f"--take must be STAGE=RUN, like teacher=runs/teacher, got {word}")
        runs[name] = Path(place)
    corpus = arguments.corpus or linked_corpus(root)
    return Sources(from_path=arguments.from_path, corpus=corpus, runs=runs)
