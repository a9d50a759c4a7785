"""What the verbs that train share: options, what is trained, and what they print at the end."""

import os
import signal
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import RenderableType

from micronet_lm.cli.output import print_report, tell
from micronet_lm.cli.parsers import Arguments, Parser, add_corpus, add_folder, add_wikitext
from micronet_lm.config import Recipe, load_scaled, merge_recipe, scaling_sentence
from micronet_lm.corpus import Corpus
from micronet_lm.errors import RunError, UsageError
from micronet_lm.files import make_folder
from micronet_lm.machine import leads

if TYPE_CHECKING:  # torch is imported when training begins, not when help is asked for
    from micronet_lm.compression import SoftLabels
    from micronet_lm.training import Outcome, Run

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


class Job(NamedTuple):
    """What to train, where, and on what."""

    run: "Run"
    """The run's folder."""

    recipe: Recipe
    """The recipe, with what the corpus tells filled in."""

    corpus: Corpus
    """The text."""

    labels: "SoftLabels | None" = None
    """A teacher's soft labels, if the model learns from them."""


def in_each_process(run: Callable[[Arguments], int]) -> Callable[[Arguments], int]:
    """Let the processes of a verb meet before they open anything, if torchrun started several.

    Then an error of one of them, such as a folder that only one host has, is told by all.
    """

    @wraps(run)
    def joined(arguments: Arguments) -> int:
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return run(arguments)

        from micronet_lm.training.processes import joined_processes

        before = signal.signal(signal.SIGTERM, _stopped)
        try:
            with joined_processes():
                return run(arguments)
        finally:
            signal.signal(signal.SIGTERM, before)

    return joined


def _stopped(number: int, frame: FrameType | None) -> None:
    raise RunError(
        "stopped by SIGTERM, which torchrun sends when another process has ended: the same command "
        "resumes from what was saved"
    )


def add_training(parser: Parser) -> None:
    """Add the options that name a run and what it is made of."""
    parser.add_argument("recipe", nargs="?", help="a preset ('micronet presets') or a .yaml file")
    add_folder(parser, "--out", "folder of the run (default: runs/VERB/RECIPE)", metavar="RUN")
    add_folder(parser, "--resume", "resume this run", metavar="RUN")
    add_corpus(parser, "a built corpus (default: RUN/corpus, which is built if it is missing)")
    add_wikitext(parser)


def add_derived(parser: Parser, what: str) -> None:
    """Add the options of a verb that makes a new run from a trained one."""
    parser.add_argument("target", type=Path, nargs="?", metavar="RUN", help="a trained run")
    add_folder(parser, "--out", f"folder of the {what} run")
    add_folder(parser, "--resume", f"resume this {what} run")
    add_corpus(parser)
    add_folder(parser, "--labels", "soft labels to distil from")


def check_place(arguments: Arguments, verb: str, named: Any, example: str) -> None:
    """Refuse a command that does not name either a source and a place or a run to resume."""
    if arguments.resume is not None and (named or arguments.out):
        raise UsageError(
            f"--resume takes everything from the run; leave out what to {verb}, and --out"
        )
    if arguments.resume is None and not (named and arguments.out):
        raise UsageError(f"give what to {verb} and where: {example}")


def default_folder(recipe: str) -> Path:
    """Return the name of a recipe as a folder: a preset's own, a file's without its suffix."""
    path = Path(recipe)
    if path.suffix in (".yaml", ".yml"):
        path = path.with_suffix("")
    return Path(path.name) if path.is_absolute() else path


def training_job(arguments: Arguments, verb: str, check: Callable[[Recipe, "Run"], None]) -> Job:
    """Return what the command line asks a verb to train.

    Without --out the run is in runs/VERB, apart from the pipelines of `micronet run`. `check` may
    refuse the recipe before a corpus is built for it.
    """
    if arguments.resume is None and arguments.recipe and arguments.out is None:
        arguments.out = Path("runs") / verb / default_folder(arguments.recipe)
    check_place(arguments, "train", arguments.recipe, f"micronet {verb} RECIPE --out RUN")

    from micronet_lm.training import Run
    from micronet_lm.training.preparation import completed, prepared_corpus

    if arguments.resume is not None:
        run, recipe = _resumed_run(arguments)
        check(recipe, run)
        return Job(run, recipe, run.corpus(arguments.corpus))
    run = Run(arguments.out)
    recipe, scaled = load_scaled(arguments.recipe, arguments.overrides)
    recipe = merge_recipe(recipe, {"cluster": None})  # of a pipeline's jobs, not of a run
    check(recipe, run)
    if arguments.corpus is not None:
        corpus = Corpus.open(arguments.corpus)
    else:
        run.check_folder()
        make_folder(run.path)
        corpus = prepared_corpus(recipe.corpus, run.path / "corpus", arguments.from_path)
    whole = completed(recipe, corpus)
    run.check(whole, corpus)  # what is refused need not be explained
    tell_scaled(scaled)
    return Job(run, whole, corpus)


def tell_scaled(scaled: Mapping[str, int]) -> None:
    """Print which keys of the recipe were scaled with a changed number of steps, if any."""
    if scaled and leads():
        tell(scaling_sentence(scaled))


def resumed_job(arguments: Arguments) -> Job:
    """Return the pruning or quantization that the command line asks to resume."""
    run, recipe = _resumed_run(arguments)
    corpus = run.corpus(arguments.corpus)
    labels = arguments.labels or (run.input("labels").path if recipe.distill else None)
    return Job(run, recipe, corpus, open_labels(labels))


def _resumed_run(arguments: Arguments) -> "tuple[Run, Recipe]":
    from micronet_lm.training import Run

    run = Run.open(arguments.resume)
    run.check_trainable()
    return run, merge_recipe(run.recipe(), arguments.overrides)


def open_labels(path: Path | None) -> "SoftLabels | None":
    """Open the soft labels that were named, if any were."""
    if path is None:
        return None
    from micronet_lm.compression import SoftLabels

    return SoftLabels.open(path)


def finish_training(job: Job, outcome: "Outcome", *, as_json: bool) -> int:
    """Print how a training ended, and return the exit code."""
    from micronet_lm.training import perplexity
    from micronet_lm.training.run import resume_command

    if not outcome.finished:
        if leads():
            tell(
                f"Interrupted and saved after step {outcome.step:,}. "
                f"Resume with: {resume_command(job.run.path, job.recipe)}"
            )
        return INTERRUPTED
    best = perplexity(outcome.best_loss)
    tokens = outcome.step * job.recipe.train.batch * job.recipe.train.window
    pace = tokens / outcome.seconds
    report = {
        "steps": outcome.step,
        "best_step": outcome.best_step,
        "validation_perplexity": best,
        "tokens": tokens,
        "seconds": outcome.seconds,
        "tokens_per_second": pace,
    }
    sentence = (
        f"Trained {outcome.step:,} steps ({tokens:,} tokens, {pace:,.0f} per second). "
        f"Validation perplexity {best:,.2f} after step {outcome.best_step:,}."
    )
    return finish_run(job.run, report, [sentence], as_json=as_json)


def finish_run(
    run: "Run", report: dict[str, Any], shown: Iterable[RenderableType], *, as_json: bool
) -> int:
    """Print what became of a new run, and the command that measures it; return the exit code."""
    if not leads():
        return 0
    whole = {"run": str(run.path), **report}
    following = f"Next: micronet evaluate {run.path} --split test"
    return print_report(whole, [*shown, following], as_json=as_json)
