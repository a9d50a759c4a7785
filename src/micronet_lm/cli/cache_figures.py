"""The cache figures of the paper from runs: `micronet reproduce cache-tokens RUN RUN ...`."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micronet_lm.cli.output import print_text
from micronet_lm.errors import RunError, UsageError
from micronet_lm.files import write_text
from micronet_lm.progress import bar

if TYPE_CHECKING:
    from micronet_lm.report.cache_effect import By
    from micronet_lm.training import Run

CACHE_FIGURES: "dict[str, By]" = {"cache-tokens": "tokens", "cache-gaps": "gaps"}
"""Figures of section 5.2, and what they sort tokens by."""


def draw_cache_figure(
    what: str, paths: Sequence[Path], out: Path, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Compare all runs but the last with the last; write a PNG and the data, and return them."""
    if not 2 <= len(paths) <= 3:
        raise UsageError(
            f"{what} compares two or three runs, not {len(paths)}; "
            "the last is the one that the others are compared with"
        )

    from micronet_lm.report.cache_effect import cache_effect
    from micronet_lm.report.cache_figure import draw_cache_effect
    from micronet_lm.report.losses import text_losses
    from micronet_lm.training import Run

    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("the runs must differ; one of them is named twice")
    runs = [Run.open(path) for path in paths]
    corpora = [run.corpus(arguments.corpus) for run in runs]
    for run, corpus in zip(runs, corpora, strict=True):
        if corpus.fingerprint != corpora[0].fingerprint:
            raise RunError(f"{run.path} and {runs[0].path} were trained on different corpora")
    ids = corpora[0].split(arguments.split)
    losses = {}
    for name, run in zip(_names(runs), runs, strict=True):
        with bar(f"Evaluating {run.path}", total=len(ids) - 1, unit="tokens") as advance:
            losses[name] = text_losses(run.model(arguments.checkpoint), ids, advance=advance)
    effect = cache_effect(ids, losses, CACHE_FIGURES[what])
    data = {**effect.as_json(), "split": arguments.split, "runs": [str(r.path) for r in runs]}
    source, stem = corpora[0].manifest.source, out / what
    draw_cache_effect(effect, stem.with_suffix(".png"), subject=f"{source} {arguments.split} split")
    write_text(stem.with_suffix(".json"), json.dumps(data, indent=1) + "\n")
    return data


def print_cache_figure(data: dict[str, Any], stem: Path) -> None:
    """Say what the figure shows, in numbers."""
    for number, difference in enumerate(data["differences"]):
        total = difference["cumulative"][-1] + data["new_words"][number]
        print_text(f"{difference['name']} - {difference['reference']}: {total:+.4f} nats a token")
    print_text(f"Written: {stem}.png, {stem}.json")


def _names(runs: "list[Run]") -> list[str]:
    """Name each run by its folder and its cache; the names must differ."""
    names = []
    for run in runs:
        cache = run.recipe().cache
        names.append(f"{run.path.name} ({f'cache {cache.size}' if cache else 'no cache'})")
    if len(set(names)) < len(names):
        return [str(run.path) for run in runs]
    return names
