"""Compare the memory that a plan estimates for each stage with the peak that the stage needs.

All stages of a recipe run, each in a process of its own, with the trainings cut to a few steps.
"""

import argparse
import json
import resource
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from micronet_lm.pipeline import (
    Product,
    Sources,
    Stage,
    Workspace,
    in_order,
    perform,
    stages_of,
    take_apart,
)
from micronet_lm.pipeline.child import do_in_child
from micronet_lm.pipeline.estimates import estimate_recipe
from micronet_lm.pipeline.runner import prepare
from micronet_lm.pipeline.stage import Work

STEPS = {
    "train.steps": 4,
    "train.evaluate_every": 4,
    "train.warmup": 1,
    "prune.steps": 2,
    "prune.every": 1,
    "prune.train": None,
    "quantize.steps": 2,
    "teacher.train.steps": 4,
    "teacher.train.evaluate_every": 4,
    "teacher.train.warmup": 1,
}


def _watched(here: Path, inputs: Mapping[str, Product], *, work: Work, file: Path) -> Any:
    """Do a stage's work, and write down the peak memory of its process."""
    result = work(here, inputs)
    file.write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))
    return result


def main() -> None:
    """Run the stages and print both numbers for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", nargs="?", default="demo/micronet")
    parser.add_argument("--from", dest="from_path", type=Path)
    parser.add_argument("--until")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    recipes = take_apart(arguments.recipe, STEPS)
    sources = Sources(from_path=arguments.from_path)
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder) / "out")
        stages = stages_of(recipes, sources)
        until = arguments.until or "account"
        targets = [stages[until]]
        rows = estimate_recipe(workspace, recipes, sources, targets, lambda _: None)
        said = {row["stage"]: row["memory"] for row in rows}
        found = []
        for stage in in_order(targets):
            file = Path(folder) / stage.name
            watched: Stage = replace(stage, work=partial(_watched, work=stage.work, file=file))
            prepare([stage])
            do_in_child(partial(perform, workspace, watched), stage)
            found.append((stage.name, said[stage.name], int(file.read_text())))
            if not arguments.json:
                print(*map(_shown, found[-1]), flush=True)
    if arguments.json:
        keys = ("stage", "estimate", "peak")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in found]))


def _shown(value: Any) -> str:
    return f"{value / 1e9:.2f} GB" if isinstance(value, int) else str(value or "none").ljust(14)


if __name__ == "__main__":
    main()
