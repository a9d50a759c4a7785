"""`micronet evaluate`: the perplexity of a run's model or of a packed file."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from micronet_lm.cli.evaluate_packed import evaluate_packed
from micronet_lm.cli.output import print_json
from micronet_lm.cli.packed import add_engine, add_threads, unknown_sentence
from micronet_lm.cli.parsers import Noted, add_checkpoint, add_parser, refuse_options
from micronet_lm.config import merge_recipe
from micronet_lm.corpus.splits import SPLITS
from micronet_lm.errors import UsageError
from micronet_lm.evaluation import Evaluation
from micronet_lm.progress import bar

if TYPE_CHECKING:
    from micronet_lm.model import LanguageModel
    from micronet_lm.training import Run

_EXAMPLE = """examples:
  micronet evaluate runs/demo --split test --json
  micronet evaluate runs/demo --cache.size 4000
  micronet evaluate model.safetensors --corpus data/demo --split test
  micronet evaluate model.safetensors --text story.txt

A packed file is evaluated without torch. For runs, --cache.size, --cache.ramp, --cache.theta and
--cache.lam evaluate with another cache than the run's own; a size of 0 means none.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "evaluate",
        help="measure a model's perplexity",
        description=(
            "Measure the perplexity of a run's model or of a packed file. Every token of the text "
            "after the first is predicted once, from all tokens before it that the model can reach."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "target", type=Path, metavar="TARGET", help="a run's folder or a packed file"
    )
    parser.add_argument(
        "--split",
        action=Noted,
        choices=SPLITS,
        default="valid",
        help="which text (default: %(default)s)",
    )
    add_checkpoint(parser)
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where the corpus is now")
    parser.add_argument(
        "--chunk", type=int, metavar="N", help="tokens at once; changes only the speed"
    )
    parser.add_argument("--text", metavar="FILE", help="a packed file's text instead of a corpus")
    add_engine(parser)
    add_threads(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run, overrides={})


def _run(arguments: argparse.Namespace) -> int:
    if arguments.chunk is not None and arguments.chunk < 1:
        raise UsageError(f"--chunk {arguments.chunk} must be at least 1 token")
    if arguments.target.is_file() or arguments.target.suffix == ".safetensors":
        evaluation, report = evaluate_packed(arguments)
        if arguments.json:
            print_json({**report, **evaluation.as_json()})
        else:
            text = report["text"] or f"{report['split']} split"
            _print_table(evaluation, f"{report['model']} ({report['engine']}), {text}")
            _print_sentence(evaluation)
            Console(highlight=False, soft_wrap=True).print(unknown_sentence(report), end="")
        return 0
    if arguments.text is not None:
        raise UsageError("--text is for packed files; 'micronet pack' makes one of a run")
    refuse_options(arguments, "is for packed files; torch computes a run", "--engine", "--threads")
    for key in arguments.overrides:
        if not key.startswith("cache."):
            raise UsageError(f"'--{key}' is not an option here; only the cache can be changed")

    from micronet_lm.training import CHUNK, Run, evaluate

    run = Run.open(arguments.target)
    ids = run.corpus(arguments.corpus).split(arguments.split)
    model = run.model(arguments.checkpoint)
    _change_cache(run, model, arguments.overrides)
    with bar(f"Evaluating {arguments.split}", total=len(ids) - 1, unit="tokens") as advance:
        result = evaluate(model, ids, chunk=arguments.chunk or CHUNK, advance=advance)
    cache = None
    if model.cache is not None:
        own = model.cache
        cache = {
            "size": own.size,
            "ramp": own.ramp,
            "theta": own.theta.item(),
            "lam": own.lam.item(),
        }
    if arguments.json:
        report = {
            "run": str(run.path),
            "split": arguments.split,
            "checkpoint": arguments.checkpoint,
            "parameters": model.parameter_count(),
            "cache": cache,
            **result.as_json(),
        }
        print_json(report)
        return 0
    _print_table(result, f"{run.path}, {arguments.split} split")
    _print_sentence(result, f"{model.parameter_count():,} parameters, ")
    if cache is not None:
        Console().print(
            f"cache of {cache['size']:,}, theta {cache['theta']:.5f}, lambda {cache['lam']:.4f}",
            highlight=False,
        )
    return 0


def _print_table(result: Evaluation, title: str) -> None:
    table = Table(box=None, header_style="bold", title=title)
    for column in ("", "tokens", "share", "loss (nats)"):
        table.add_column(column, justify="left" if not column else "right")
    for part in result.bins:
        loss = "-" if part.loss is None else f"{part.loss:.4f}"
        share = f"{part.tokens / result.tokens:.1%}"
        table.add_row(f"words from {part.first:,}", f"{part.tokens:,}", share, loss)
    table.add_row("all", f"{result.tokens:,}", "100.0%", f"{result.loss:.4f}", style="bold")
    Console().print(table)


def _print_sentence(result: Evaluation, more: str = "") -> None:
    Console().print(
        f"perplexity [bold]{result.perplexity:,.2f}[/bold], {result.bits_per_token:.4f} bits a "
        f"token, {more}{result.seconds:.1f} s ({result.tokens / result.seconds:,.0f} tokens/s)",
        highlight=False,
        soft_wrap=True,
    )


def _change_cache(run: "Run", model: "LanguageModel", overrides: dict[str, Any]) -> None:
    """Give the model another cache; what is not said stays as it was learned."""
    if not overrides:
        return

    from micronet_lm.model import Cache

    learned = {}
    if model.cache is not None:
        learned = {"cache.theta": model.cache.theta.item(), "cache.lam": model.cache.lam.item()}
    config = merge_recipe(run.recipe(), {**learned, **overrides}).cache
    model.cache = None if config is None else Cache(config)
