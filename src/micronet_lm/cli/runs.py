"""What the verbs that train have in common: where the run is, what it is made of, how it ended."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from micronet_lm.config import Recipe, load_recipe, merge_recipe
from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.errors import ConfigError, RunError, UsageError

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
    return Job(run, _completed(recipe, corpus), corpus)


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
        print(json.dumps(report))  # noqa: T201
    else:
        print(  # noqa: T201
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
    if arguments.corpus is not None:
        return Corpus.open(arguments.corpus)
    config, place = recipe.corpus, run.path / "corpus"
    manifest = place / "manifest.json"
    if not manifest.is_file() and leads():
        return build_corpus(
            config.source,
            place,
            tokenizer=config.tokenizer,
            from_path=arguments.from_path,
            min_count=config.min_count,
            max_vocabulary=config.max_vocabulary,
        )
    while not manifest.is_file():  # the leading process builds it
        time.sleep(0.2)
    corpus = Corpus.open(place)
    there = corpus.manifest
    for key, wanted in config.model_dump(exclude_none=True).items():
        if wanted != getattr(there, key):
            raise RunError(
                f"{place} was built with {key} {getattr(there, key)}, not {wanted}; "
                "remove that folder, choose another --out, or name a corpus with --corpus"
            )
    return corpus


def _completed(recipe: Recipe, corpus: Corpus) -> Recipe:
    """Fill in what the corpus tells: its own making, and the size of its vocabulary."""
    size, wanted = len(corpus.vocabulary), recipe.model.vocabulary
    if wanted is not None and wanted != size:
        raise ConfigError(
            f"model.vocabulary is {wanted:,} but {corpus.path} has {size:,} words; "
            "leave model.vocabulary out, or train on the corpus that the recipe is made for"
        )
    manifest = corpus.manifest
    facts = {f"corpus.{key}": getattr(manifest, key) for key in recipe.corpus.model_dump()}
    return merge_recipe(recipe, {**facts, "model.vocabulary": size})
