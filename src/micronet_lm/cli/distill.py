"""`micronet distill`: train the model of a recipe with a teacher's soft labels."""

from pathlib import Path
from typing import TYPE_CHECKING

from micronet_lm.cli.parsers import Arguments, Verbs, add_folder, add_verb
from micronet_lm.cli.runs import add_training, finish_training, in_each_process, training_job
from micronet_lm.config import Recipe, describe_keys
from micronet_lm.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from micronet_lm.compression import SoftLabels
    from micronet_lm.training import Run

_EXAMPLE = """examples:
  micronet train wikitext-2/teacher --corpus data/wikitext-2 --out runs/teacher
  micronet soft-labels runs/teacher --out labels/top-30
  micronet distill wikitext-2/distilled --labels labels/top-30 --corpus data/wikitext-2 \\
      --out runs/distilled
  micronet distill --resume runs/distilled

  micronet soft-labels runs/teacher --samples 12 --out labels/sampled
  micronet distill wikitext-2/distilled --labels labels/sampled --corpus data/wikitext-2 \\
      --out runs/distilled-sampled --distill.method sampled

Ctrl-C saves; the same command or --resume resumes bit-exactly. torchrun works as for train.

Any key of the recipe can be set as --section.key VALUE:
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "distill",
        _run,
        help="train a language model with a teacher's soft labels",
        description=(
            "Train the language model of a recipe on a corpus and on what a teacher expects after "
            "each of its tokens. The recipe's section distill says how much the teacher counts."
        ),
        epilog=_EXAMPLE + describe_keys(),
        usage=(
            "micronet distill [RECIPE] --labels DIR [--out RUN] [--corpus DIR] [--json] "
            "[--section.key VALUE ...]"
        ),
        keys=True,
    )
    add_training(parser)
    add_folder(parser, "--labels", "what micronet soft-labels wrote")


@in_each_process
def _run(arguments: Arguments) -> int:
    labels: list[SoftLabels] = []

    def check(recipe: Recipe, run: "Run") -> None:
        """Refuse what does not fit together before a corpus is built for it."""
        from micronet_lm.compression import SoftLabels

        later = [name for name in ("prune", "search", "quantize") if getattr(recipe, name)]
        if later:
            raise ConfigError(
                f"the recipe has stages after this training ({', '.join(later)}): micronet run "
                "carries out all of them, and with --until student stops after this training"
            )
        labels.append(SoftLabels.open(_labels(arguments, recipe, run)))

    job = training_job(arguments, "distill", check)

    from micronet_lm.compression import distill

    amend = arguments.resume is not None
    outcome = distill(job.run, job.recipe, job.corpus, labels[0], amend=amend)
    return finish_training(job, outcome, as_json=arguments.json)


def _labels(arguments: Arguments, recipe: Recipe, run: "Run") -> Path:
    """Return the labels that were named, or those of the run that resumes."""
    config = recipe.distill
    if config is None:
        raise ConfigError(
            "the recipe has no section distill; name one of its keys to switch it on, such as "
            "--distill.weight_max 0.5, or train without a teacher: micronet train"
        )
    if arguments.labels is not None:
        return Path(arguments.labels)
    if arguments.resume is not None:
        return run.input("labels").path
    kind = f"--top-k {config.top_k}" if config.method == "top-k" else f"--samples {config.samples}"
    raise UsageError(
        f"name the teacher's soft labels with --labels DIR; they are made by: micronet train "
        f"{config.teacher or 'TEACHER'} --out runs/teacher, then micronet soft-labels "
        f"runs/teacher {kind} --out DIR"
    )
