"""`micronet run`: a recipe from its text to the end, in one command."""

import argparse
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micronet_lm.cli.output import print_json, tell
from micronet_lm.cli.parsers import add_parser
from micronet_lm.cli.run_tables import print_pipeline, print_plan
from micronet_lm.cli.runs import INTERRUPTED
from micronet_lm.config import describe_keys, preset_names
from micronet_lm.errors import UsageError

if TYPE_CHECKING:
    from micronet_lm.pipeline import Recipes, Sources, Stage, Workspace

_EXAMPLE = """examples:
  micronet run demo
  micronet run wikitext-2/micronet --out runs/wikitext-2 --from data/wikitext-2.zip
  micronet run wikitext-2/micronet --out runs/wikitext-2 --dry-run
  micronet run wikitext-2/micronet --out runs/wikitext-2 --search.cache_size 4000
  micronet run wikitext-2/micronet --out runs/wikitext-2 --take teacher=runs/teacher
  micronet run mine.yaml --out runs/mine --corpus data/mine --until prune

demo, wikitext-2 and paper stand for their whole pipelines (demo/micronet, ...).

All stages that the recipe asks for, in order. What is complete and unchanged is skipped, what was
interrupted goes on to the same bits, and what has changed is run again with everything after it;
what it replaces is moved aside as STAGE.old-XXXXXXXX. --dry-run tells what would be done, and
estimates what it costs from a short measurement on this machine.

Any key of the recipe can be set as --section.key VALUE, the teacher's as --teacher.section.key:
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "run",
        help="go from text to a compressed model in one command",
        description=(
            "Run all stages of a recipe: corpus, teacher, soft labels, student, sensitivity, "
            "pruning, cache search, quantization, packing, accounting, report."
        ),
        epilog=_EXAMPLE + describe_keys(),
        usage="micronet run RECIPE [--out DIR] [--dry-run] [--json] [--section.key VALUE ...]",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="a preset ('micronet presets') or a .yaml")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (default: runs/RECIPE)")
    parser.add_argument(
        "--dry-run", action="store_true", help="tell what would be done and what it would cost"
    )
    parser.add_argument("--until", metavar="STAGE", help="stop after this stage")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="a corpus that is built already")
    parser.add_argument(
        "--from", type=Path, metavar="PATH", dest="from_path", help="where WikiText already lies"
    )
    parser.add_argument(
        "--take",
        action="append",
        default=[],
        metavar="STAGE=RUN",
        help="go on with a copy of a run that was trained elsewhere with the same recipe",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.set_defaults(run=_run, overrides={})


def _run(arguments: argparse.Namespace) -> int:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "a pipeline is one process; train its large stages with torchrun -m micronet_lm train, "
            "and hand them over with --take STAGE=RUN"
        )

    from micronet_lm.pipeline import Interrupted, Workspace, run_stages, stages_of, take_apart

    name = whole_recipe(arguments.recipe)
    root = arguments.out or Path("runs") / Path(arguments.recipe).with_suffix("")
    workspace, recipes = Workspace(root), take_apart(name, arguments.overrides)
    sources = _sources(arguments, root)
    stages = stages_of(recipes, sources)
    if find_spec("matplotlib") is None:
        tell("There will be no report: pip install 'micronet-lm[report]' draws it.")
    else:
        from micronet_lm.report.written import report_stage

        setup = {"recipe": arguments.recipe, "overrides": arguments.overrides}
        stages["report"] = report_stage(stages, setup)
    targets = _targets(stages, arguments.until)
    if arguments.dry_run:
        return _dry_run(workspace, recipes, sources, targets, as_json=arguments.json)
    try:
        run_stages(workspace, targets, tell, in_children=arguments.is_program)
    except (Interrupted, KeyboardInterrupt) as stop:
        sys.stderr.write(f"Interrupted {stop}".rstrip() + "; the same command goes on.\n")
        return INTERRUPTED
    if arguments.json:
        print_json(_report(workspace, stages))
        return 0
    print_pipeline(workspace.root, _report(workspace, stages)["stages"])
    return 0


def whole_recipe(name: str) -> str:
    """A scale's name stands for its whole pipeline: `demo` for `demo/micronet`."""
    return f"{name}/micronet" if f"{name}/micronet" in preset_names() else name


def _sources(arguments: argparse.Namespace, root: Path) -> "Sources":
    """Where things lie that need not be made."""
    from micronet_lm.pipeline import Sources, linked_corpus

    runs = {}
    for word in arguments.take:
        name, equals, place = word.partition("=")
        if not (equals and place):
            raise UsageError(f"--take {word} must be STAGE=RUN, like teacher=runs/teacher")
        runs[name] = Path(place)
    corpus = arguments.corpus or linked_corpus(root)
    return Sources(from_path=arguments.from_path, corpus=corpus, runs=runs)


def _targets(stages: "dict[str, Stage]", until: str | None) -> "list[Stage]":
    if until is None:
        return list(stages.values())
    if until not in stages:
        raise UsageError(f"--until {until}: the recipe's stages are {', '.join(stages)}")
    return [stages[until]]


def _dry_run(
    workspace: "Workspace",
    recipes: "Recipes",
    sources: "Sources",
    targets: "list[Stage]",
    *,
    as_json: bool,
) -> int:
    """Tell what would be done; nothing is written but what the measurement remembers."""
    from micronet_lm.pipeline import plan
    from micronet_lm.pipeline.corpus_size import corpus_size
    from micronet_lm.pipeline.costs import Costs
    from micronet_lm.pipeline.estimates import estimated

    costs = Costs(recipes, corpus_size(recipes.corpus, workspace.root / "corpus", sources.corpus))
    rows = estimated(workspace, plan(workspace, targets), costs, tell)
    place = next(p for p in (workspace.root, *workspace.root.absolute().parents) if p.exists())
    free = shutil.disk_usage(place).free
    if as_json:
        print_json({"out": str(workspace.root), "free": free, "stages": rows})
        return 0
    print_plan(str(workspace.root), rows, free)
    return 0


def _report(workspace: "Workspace", stages: "dict[str, Stage]") -> dict[str, Any]:
    done: dict[str, Any] = {}
    for name, stage in stages.items():
        record = workspace.record(stage)
        if record and record.fingerprint == stage.fingerprint:
            done[name] = {
                "complete": record.complete,
                "path": str(workspace.folder(stage)),
                "seconds": record.seconds,
                **record.result,
            }
    return {"out": str(workspace.root), "stages": done}
