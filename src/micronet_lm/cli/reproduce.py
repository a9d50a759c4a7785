"""`micronet reproduce`: the paper's tables and figures from runs."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from micronet_lm.cli.parsers import add_checkpoint, add_parser
from micronet_lm.corpus.splits import SPLITS
from micronet_lm.errors import RunError, UsageError
from micronet_lm.files import write_text
from micronet_lm.progress import bar

if TYPE_CHECKING:
    from micronet_lm.report.cache_effect import By
    from micronet_lm.training import Run

_FIGURES: "dict[str, By]" = {"figure-cache-tokens": "tokens", "figure-cache-gaps": "gaps"}

_EXAMPLE = """examples:
  micronet reproduce figure-cache-tokens runs/small runs/cache --out figures
  micronet reproduce figure-cache-gaps runs/small runs/cache-1000 runs/cache --out figures

figure-cache-tokens  where the loss differs between runs, by a word's rank in frequency
figure-cache-gaps    the same by the distance to the word's previous occurrence (section 5.2)

Each run but the last is compared with the last. The folder gets a PNG and the data as JSON.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "reproduce",
        help="make a table or figure of the paper",
        description="Make a table or figure of the paper from runs.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("what", choices=list(_FIGURES), metavar="FIGURE", help="see below")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="two or three runs")
    parser.add_argument(
        "--out", type=Path, default=Path("figures"), metavar="DIR", help="(default: figures)"
    )
    parser.add_argument(
        "--split", choices=SPLITS, default="valid", help="which text (default: %(default)s)"
    )
    add_checkpoint(parser)
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where the corpus is now")
    parser.add_argument("--json", action="store_true", help="print the data as one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if not 2 <= len(arguments.runs) <= 3:
        raise UsageError(
            f"{arguments.what} compares two or three runs, not {len(arguments.runs)}; "
            "the last is the one that the others are compared with"
        )

    from micronet_lm.report.cache_effect import cache_effect
    from micronet_lm.report.cache_figure import draw_cache_effect
    from micronet_lm.report.losses import text_losses
    from micronet_lm.training import Run

    if len({path.resolve() for path in arguments.runs}) < len(arguments.runs):
        raise UsageError("the runs must differ; one of them is named twice")
    runs = [Run.open(path) for path in arguments.runs]
    corpora = [run.corpus(arguments.corpus) for run in runs]
    for run, corpus in zip(runs, corpora, strict=True):
        if corpus.fingerprint != corpora[0].fingerprint:
            raise RunError(f"{run.path} and {runs[0].path} were trained on different corpora")
    ids = corpora[0].split(arguments.split)
    losses = {}
    for name, run in zip(_names(runs), runs, strict=True):
        with bar(f"Evaluating {run.path}", total=len(ids) - 1, unit="tokens") as advance:
            losses[name] = text_losses(run.model(arguments.checkpoint), ids, advance=advance)
    effect = cache_effect(ids, losses, _FIGURES[arguments.what])
    stem = arguments.out / arguments.what.removeprefix("figure-")
    data = {**effect.as_json(), "split": arguments.split, "runs": [str(r.path) for r in runs]}
    source = corpora[0].manifest.source
    draw_cache_effect(effect, stem.with_suffix(".png"), subject=f"{source} {arguments.split} split")
    write_text(stem.with_suffix(".json"), json.dumps(data, indent=1) + "\n")
    if arguments.json:
        print(json.dumps(data))  # noqa: T201
        return 0
    for number, difference in enumerate(effect.differences):
        total = difference.cumulative[-1] + effect.new_words[number]
        print(f"{difference.name} - {difference.reference}: {total:+.4f} nats a token")  # noqa: T201
    print(f"Written: {stem}.png, {stem}.json")  # noqa: T201
    return 0


def _names(runs: "list[Run]") -> list[str]:
    """Name each run by its folder and its cache; the names must differ."""
    names = []
    for run in runs:
        cache = run.recipe().cache
        names.append(f"{run.path.name} ({f'cache {cache.size}' if cache else 'no cache'})")
    if len(set(names)) < len(names):
        return [str(run.path) for run in runs]
    return names
