"""`micronet train`: a recipe and a corpus become a run."""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from micronet_lm.cli.parsers import add_parser
from micronet_lm.config import Recipe, describe_keys, load_recipe, merge_recipe
from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.errors import ConfigError, RunError, UsageError

if TYPE_CHECKING:  # torch is imported when training begins, not when help is asked for
    from micronet_lm.training import Outcome, Run

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

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
    parser.set_defaults(run=_run, overrides={})


def _run(arguments: argparse.Namespace) -> int:
    overrides = arguments.overrides
    if arguments.resume is not None and (arguments.recipe or arguments.out):
        raise UsageError("--resume RUN takes everything from the run; leave out RECIPE and --out")
    if arguments.resume is None and not (arguments.recipe and arguments.out):
        raise UsageError("say what to train and where: micronet train RECIPE --out RUN")

    from micronet_lm.training import Run, train

    if arguments.resume is not None:
        run = Run.open(arguments.resume)
        recipe = merge_recipe(run.recipe(), overrides)
        corpus = run.corpus(arguments.corpus)
    else:
        run = Run(arguments.out)
        recipe = load_recipe(arguments.recipe, overrides)
        corpus = _corpus(arguments, recipe, run)
        recipe = _completed(recipe, corpus)
    outcome = train(run, recipe, corpus, amend=arguments.resume is not None)
    if not outcome.finished:
        return _interrupted(run, outcome)
    return _conclude(run, recipe, outcome, as_json=arguments.json) if _leads() else 0


def _corpus(arguments: argparse.Namespace, recipe: Recipe, run: "Run") -> Corpus:
    """Open the corpus that was named, or the run's own, which is built when it is not there."""
    if arguments.corpus is not None:
        return Corpus.open(arguments.corpus)
    config, place = recipe.corpus, run.path / "corpus"
    manifest = place / "manifest.json"
    if not manifest.is_file() and _leads():
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


def _interrupted(run: "Run", outcome: "Outcome") -> int:
    if _leads():
        sys.stderr.write(
            f"Interrupted and saved after step {outcome.step:,}. "
            f"Go on with: micronet train --resume {run.path}\n"
        )
    return INTERRUPTED


def _conclude(run: "Run", recipe: Recipe, outcome: "Outcome", *, as_json: bool) -> int:
    from micronet_lm.training import perplexity

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


def _leads() -> bool:
    return os.environ.get("RANK", "0") == "0"
