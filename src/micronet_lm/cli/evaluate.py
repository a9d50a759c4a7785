"""`micronet evaluate`: the perplexity of a run's model or of a packed file, or its suggestions."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from micronet_lm.cli import parsers
from micronet_lm.cli.keystrokes import add_keystrokes, run_keystrokes
from micronet_lm.cli.output import make_table, print_report
from micronet_lm.cli.packed import (
    open_model,
    open_report,
    open_sentence,
    pipeline_file,
    read_text,
    unknown_sentence,
    unknown_share,
)
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.corpus import Corpus
from micronet_lm.errors import UsageError
from micronet_lm.evaluation import Evaluation
from micronet_lm.progress import bar
from micronet_lm.runtime.engine import Ids

_EXAMPLE = """examples:
  micronet evaluate runs/train/demo --split test --json
  micronet evaluate runs/train/demo --cache.size 4000
  micronet evaluate model.safetensors --corpus data/demo --split test
  micronet evaluate model.safetensors --text story.txt
  micronet evaluate model.safetensors --keystrokes --slots 3 --text letters.txt

A packed file is evaluated without torch. For runs, --cache.size, --cache.ramp, --cache.theta and
--cache.lam evaluate with another cache than the run's own; a size of 0 means none.
--keystrokes types a text with a packed file's suggestions: keystroke savings, recall of the next
word, share of unknown words and latency, once forgetting at each line's end and once learning.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "evaluate",
        _run,
        help="measure a model's perplexity",
        description=(
            "Measure the perplexity of a run's model or of a packed file. Every token of the text "
            "after the first is predicted once, from all tokens before it that the model can reach."
        ),
        epilog=_EXAMPLE,
        keys=True,
    )
    parser.add_argument(
        "target",
        type=Path,
        metavar="TARGET",
        help="a run's folder, a packed file, or a pipeline's folder for its packed file",
    )
    parsers.add_split(parser)
    parsers.add_checkpoint(parser)
    parsers.add_corpus(parser, "the corpus of a packed file, or of a run if it was moved")
    parsers.add_number(
        parser, "--chunk", type=parsers.whole(1), help="tokens at once; changes only the speed"
    )
    parser.add_argument("--text", metavar="FILE", help="a packed file's text instead of a corpus")
    add_keystrokes(parser)
    parsers.add_engine(parser)
    parsers.add_threads(parser)


def _run(arguments: Arguments) -> int:
    arguments.target = pipeline_file(arguments.target)
    if arguments.keystrokes:
        return run_keystrokes(arguments)
    parsers.refuse(arguments, "is for --keystrokes", "--slots", "--personal", "--incognito")
    for key in arguments.overrides:
        if not key.startswith("cache."):
            raise UsageError(f"'--{key}' is not an option here; only the cache can be changed")
    is_packed = arguments.target.is_file() or arguments.target.suffix == ".safetensors"
    if not is_packed and not arguments.target.exists():
        raise UsageError(
            f"there is neither a run nor a packed file at {arguments.target}; 'micronet train' "
            "makes a run, and 'micronet pack' makes a file from it"
        )
    report, result = (_evaluate_packed if is_packed else _evaluate_run)(arguments)
    shown = (_shown_packed if is_packed else _shown_run)(report, result)
    return print_report({**report, **result.as_json()}, shown, as_json=arguments.json)


def _evaluate_run(arguments: Arguments) -> tuple[dict[str, Any], Evaluation]:
    parsers.refuse(arguments, "is for packed files; 'micronet pack' makes one from a run", "--text")
    parsers.refuse(arguments, "is for packed files; torch computes a run", "--engine", "--threads")
    from micronet_lm.training import Run, evaluate
    from micronet_lm.training.evaluation import change_cache

    run = Run.open(arguments.target)
    ids = run.corpus(arguments.corpus).split(arguments.split)
    model = run.model(arguments.checkpoint)
    if arguments.overrides:
        change_cache(model, run.recipe(), arguments.overrides)
    with bar(f"Evaluating {arguments.split}", total=len(ids) - 1, unit="tokens") as advance:
        result = evaluate(model, ids, chunk=arguments.chunk, advance=advance)
    report = {
        "run": str(run.path),
        "split": arguments.split,
        "checkpoint": arguments.checkpoint,
        "parameters": model.parameter_count(),
        "cache": None if model.cache is None else model.cache.as_json(),
    }
    return report, result


def _evaluate_packed(arguments: Arguments) -> tuple[dict[str, Any], Evaluation]:
    """Evaluate a packed file, without torch."""
    from micronet_lm.runtime.evaluation import check_words, evaluate_engine

    keys = (f"--{key}" for key in arguments.overrides)
    parsers.refuse(
        arguments, "cannot be set for a packed file; evaluate the run it is made of", *keys
    )
    parsers.refuse(arguments, "is for runs; a packed file's engine chooses its own", "--chunk")
    if (arguments.text is None) == (arguments.corpus is None):
        raise UsageError(
            f"give the text to evaluate the packed file {arguments.target} on: --corpus DIR with "
            "--split, or --text FILE"
        )
    parsers.refuse(arguments, "is for runs; a packed file holds one model", "--checkpoint")
    if arguments.text is not None:
        parsers.refuse(arguments, "is for a corpus; --text is one whole text", "--split")
    lm = open_model(arguments.target, arguments.engine)
    if arguments.text is not None:
        split = None
        ids: Ids = lm.encoder.ids(read_text(arguments.text))
    else:
        corpus = Corpus.open(arguments.corpus)
        check_words(lm.vocabulary, corpus)
        split, ids = arguments.split, corpus.split(arguments.split)
    with bar(f"Evaluating {split or arguments.text}", total=None):
        result = evaluate_engine(lm.engine, ids, arguments.threads)
    report = {
        "model": str(arguments.target),
        "engine": lm.engine.name,
        "text": arguments.text,
        "split": split,
        "cache": json.loads(lm.engine.metadata)["cache"],
        **unknown_share(int(np.count_nonzero(ids[1:] == lm.encoder.unknown)), result.tokens),
    }
    if arguments.text is not None:  # a corpus keeps no letters of unknown words
        report |= open_report(lm, read_text(arguments.text), arguments.threads)
    return report, result


def _shown_run(report: Mapping[str, Any], result: Evaluation) -> Iterator[RenderableType]:
    yield f"{report['run']}, {report['split']} split"  # a table's title would be folded
    yield _table(result)
    yield _sentence(result, f"{report['parameters']:,} parameters, ")
    if cache := report["cache"]:
        yield f"cache of {cache['size']:,}, theta {cache['theta']:.5f}, lambda {cache['lam']:.4f}"


def _shown_packed(report: Mapping[str, Any], result: Evaluation) -> Iterator[RenderableType]:
    text = report["text"] or f"{report['split']} split"
    yield f"{report['model']} ({report['engine']}), {text}"
    yield _table(result)
    yield _sentence(result)
    yield from unknown_sentence(report)
    yield from open_sentence(report)


def _table(result: Evaluation) -> Table:
    table = make_table("", "tokens", "share", "loss (nats)")
    for part in result.bins:
        loss = "-" if part.loss is None else f"{part.loss:.4f}"
        share = f"{part.tokens / result.tokens:.1%}"
        table.add_row(f"words from {part.first:,}", f"{part.tokens:,}", share, loss)
    table.add_row("all", f"{result.tokens:,}", "100.0%", f"{result.loss:.4f}", style="bold")
    return table


def _sentence(result: Evaluation, more: str = "") -> Text:
    return Text.from_markup(
        f"perplexity [bold]{result.perplexity:,.2f}[/bold], {result.bits_per_token:.4f} bits per "
        f"token, {more}{result.seconds:.1f} s ({result.tokens / result.seconds:,.0f} tokens/s)"
    )
