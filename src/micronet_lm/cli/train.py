"""`micronet train`: train the model of a recipe on a corpus."""

from typing import TYPE_CHECKING

from micronet_lm.cli.parsers import Arguments, Verbs, add_verb
from micronet_lm.cli.runs import add_training, finish_training, in_each_process, training_job
from micronet_lm.config import Recipe, describe_keys
from micronet_lm.errors import ConfigError

if TYPE_CHECKING:
    from micronet_lm.training import Run

_EXAMPLE = """examples:
  micronet train demo
  micronet corpus build wikitext-2 --out data/wikitext-2
  micronet train wikitext-2/small --corpus data/wikitext-2 --out runs/small --model.context 129
  micronet train --resume runs/small
  torchrun --nproc-per-node 2 -m micronet_lm train wikitext-2/small --corpus data/wikitext-2 \\
      --out runs/small

Ctrl-C saves; the same command or --resume resumes bit-exactly.

Any key of the recipe can be set as --section.key VALUE:
"""

_NEEDS = {
    "search": "a trained run: micronet search-cache RUN",
    "quantize": "a trained run: micronet quantize RUN --out DIR",
    "prune": "a trained run: micronet prune RUN --out DIR",
    "distill": "a teacher's soft labels: micronet distill RECIPE --labels DIR --out RUN",
}
"""Sections of a recipe that other verbs carry out, and what those need."""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "train",
        _run,
        help="train a language model",
        description="Train the language model of a recipe on a corpus.",
        epilog=_EXAMPLE + describe_keys(),
        usage=(
            "micronet train [RECIPE] [--out RUN] [--corpus DIR] [--json] [--section.key VALUE ...]"
        ),
        keys=True,
    )
    add_training(parser)


@in_each_process
def _run(arguments: Arguments) -> int:
    job = training_job(arguments, "train", _check)

    from micronet_lm.training import train

    outcome = train(job.run, job.recipe, job.corpus, amend=arguments.resume is not None)
    return finish_training(job, outcome, as_json=arguments.json)


def _check(recipe: Recipe, run: "Run") -> None:
    """Refuse a recipe that another verb carries out."""
    from micronet_lm.training.run import resume_command

    if run.recipe_file.is_file():
        instead = f", or resume it: {resume_command(run.path, recipe)}"
    else:
        instead = "; micronet run carries out a whole recipe"
    for section, needed in _NEEDS.items():
        if getattr(recipe, section):
            raise ConfigError(f"the recipe has a section {section}, which needs {needed}{instead}")
