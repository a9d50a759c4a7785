"""What the verbs that train have in common: where the run is, what it is made of, how it ended."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from micronet_lm.cli.output import print_json, print_text
from micronet_lm.config import Recipe, load_recipe, merge_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import UsageError

if TYPE_CHECKING:  # torch is imported when training begins, not when help is asked for
    from micronet_lm.training import Outcome, Run

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


class Job(NamedTuple):
    """What is to be trained, where, and on what."""

    run: "Run"
    """The run's folder."""

    recipe: Recipe
    """The recipe, with what the corpus tells filled in."""

    corpus: Corpus
    """The text."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the words that name a run and what it is made of."""
    parser.add_argument("recipe", nargs="?", help="a preset ('micronet presets') or a .yaml file")
    parser.add_argument("--out", type=Path, metavar="RUN", help="folder of the run")
    parser.add_argument("--resume", type=Path, metavar="RUN", help="go on with this run")
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR", help="a built corpus; else RUN/corpus is built"
    )
    parser.add_argument(
        "--from", type=Path, metavar="PATH", dest="from_path", help="where WikiText already lies"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.set_defaults(overrides={})


def job(arguments: argparse.Namespace, example: str, check: Callable[[Recipe, "Run"], None]) -> Job:
    """Find out what the command line asks to train; `example` says it how it should be said.

    `check` may refuse the recipe before a corpus is built for it.
    """
    if arguments.resume is not None and (arguments.recipe or arguments.out):
        raise UsageError("--resume RUN takes everything from the run; leave out RECIPE and --out")
    if arguments.resume is None and not (arguments.recipe and arguments.out):
        raise UsageError(f"say what to train and where: {example}")

    from micronet_lm.training import Run
    from micronet_lm.training.preparation import completed

    if arguments.resume is not None:
        run = Run.open(arguments.resume)
        run.check_trainable()
        recipe = merge_recipe(run.recipe(), arguments.overrides)
        check(recipe, run)
        return Job(run, recipe, run.corpus(arguments.corpus))
    run = Run(arguments.out)
    recipe = load_recipe(arguments.recipe, arguments.overrides)
    check(recipe, run)
    corpus = _corpus(arguments, recipe, run)
    return Job(run, completed(recipe, corpus), corpus)


def conclude(job: Job, outcome: "Outcome", *, as_json: bool) -> int:
    """Say how it went, and return the exit code."""
    from micronet_lm.training import perplexity
    from micronet_lm.training.run import resume_command

    run, recipe, _ = job
    if not outcome.finished:
        if leads():
            sys.stderr.write(
                f"Interrupted and saved after step {outcome.step:,}. "
                f"Go on with: {resume_command(run.path, recipe)}\n"
            )
        return INTERRUPTED
    if not leads():
        return 0
    best = perplexity(outcome.best_loss)
    tokens = outcome.step * recipe.train.batch * recipe.train.window
    pace = tokens / outcome.seconds
    if as_json:
        report = {
            "run": str(run.path),
            "steps": outcome.step,
            "best_step": outcome.best_step,
            "validation_perplexity": best,
            "tokens": tokens,
            "seconds": outcome.seconds,
            "tokens_per_second": pace,
        }
        print_json(report)
    else:
        print_text(
            f"Trained {outcome.step:,} steps ({tokens:,} tokens, {pace:,.0f} a second). "
            f"Validation perplexity {best:,.2f} after step {outcome.best_step:,}.\n"
            f"Next: micronet evaluate {run.path} --split test"
        )
    return 0


def leads() -> bool:
    """Whether this is the process that talks to the user."""
    return os.environ.get("RANK", "0") == "0"


def _corpus(arguments: argparse.Namespace, recipe: Recipe, run: "Run") -> Corpus:
    """Open the corpus that was named, or the run's own, which is built when it is not there."""
    from micronet_lm.training.preparation import is_built, make_corpus, open_corpus

    if arguments.corpus is not None:
        return Corpus.open(arguments.corpus)
    place = run.path / "corpus"
    if not is_built(place) and leads():
        return make_corpus(recipe.corpus, place, arguments.from_path)
    while not is_built(place):  # the leading process builds it
        time.sleep(0.2)
    return open_corpus(recipe.corpus, place)
