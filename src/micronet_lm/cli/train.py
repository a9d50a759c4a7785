"""`micronet train`: a recipe and a corpus become a run."""

import argparse
from typing import TYPE_CHECKING

from micronet_lm.cli.parsers import add_parser
from micronet_lm.cli.runs import add_arguments, conclude, job
from micronet_lm.config import Recipe, describe_keys
from micronet_lm.errors import ConfigError

if TYPE_CHECKING:
    from micronet_lm.training import Run

_EXAMPLE = """examples:
  micronet train demo --out runs/demo
  micronet corpus build wikitext-2 --out data/wikitext-2
  micronet train wikitext-2/small --corpus data/wikitext-2 --out runs/small --model.context 129
  micronet train --resume runs/small
  torchrun --nproc-per-node 2 -m micronet_lm train wikitext-2/small --corpus data/wikitext-2 \\
      --out runs/small

Ctrl-C saves; the same command or --resume goes on to the same bits.

Any key of the recipe can be set as --section.key VALUE:
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "train",
        help="train a language model",
        description="Train the language model of a recipe on a corpus.",
        epilog=_EXAMPLE + describe_keys(),
        usage="micronet train [RECIPE] --out RUN [--corpus DIR] [--json] [--section.key VALUE ...]",
    )
    add_arguments(parser)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    asked = job(arguments, "micronet train RECIPE --out RUN", _check)

    from micronet_lm.training import train

    outcome = train(asked.run, asked.recipe, asked.corpus, amend=arguments.resume is not None)
    return conclude(asked, outcome, as_json=arguments.json)


def _check(recipe: Recipe, run: "Run") -> None:
    """Refuse a recipe that another verb trains."""
    from micronet_lm.training.run import resume_command

    go_on = f", or go on with it: {resume_command(run.path, recipe)}"
    whole = "; micronet run carries out a whole recipe"
    there = go_on if run.recipe_file.is_file() else whole
    if recipe.search:
        raise ConfigError(
            "the recipe has a section search, which needs a trained run: micronet search-cache RUN"
            f"{there}"
        )
    if recipe.quantize:
        raise ConfigError(
            "the recipe has a section quantize, which needs a trained run: micronet quantize RUN "
            f"--out DIR{there}"
        )
    if recipe.prune:
        raise ConfigError(
            "the recipe has a section prune, which needs a trained run: micronet prune RUN "
            f"--out DIR{there}"
        )
    if recipe.distill:
        raise ConfigError(
            "the recipe has a section distill, which needs a teacher's soft labels: "
            f"micronet distill RECIPE --labels DIR --out RUN{there}"
        )
