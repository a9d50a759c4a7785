"""The cache figures of section 5.2 from runs: where their losses differ, as a picture and data."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from micronet_lm.errors import RunError, UsageError
from micronet_lm.files import write_text
from micronet_lm.progress import bar
from micronet_lm.report.cache_effect import cache_effect
from micronet_lm.report.losses import text_losses
from micronet_lm.report.tables import CACHE_FIGURES
from micronet_lm.runs import Which
from micronet_lm.training import Run


def compare_runs(
    what: str,
    paths: Sequence[Path],
    out: Path,
    *,
    split: str,
    corpus: Path | None = None,
    checkpoint: Which = "best",
) -> dict[str, Any]:
    """Compare all runs but the last with the last; write a PNG and the data, and return it."""
    from micronet_lm.report.cache_figure import draw_cache_effect

    if not 2 <= len(paths) <= 3:
        raise UsageError(
            f"{what} compares two or three runs, not {len(paths)}; "
            "the last is the one that the others are compared with"
        )
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("the runs must differ; one of them is named twice")
    runs = [Run.open(path) for path in paths]
    corpora = [run.corpus(corpus) for run in runs]
    for run, own in zip(runs, corpora, strict=True):
        if own.fingerprint != corpora[0].fingerprint:
            raise RunError(f"{run.path} and {runs[0].path} were trained on different corpora")
    ids = corpora[0].split(split)
    losses = {}
    for name, run in zip(_names(runs), runs, strict=True):
        with bar(f"Evaluating {run.path}", total=len(ids) - 1, unit="tokens") as advance:
            losses[name] = text_losses(run.model(checkpoint), ids, advance=advance)
    effect = cache_effect(ids, losses, CACHE_FIGURES[what])
    data = {**effect.as_json(), "split": split, "runs": [str(run.path) for run in runs]}
    source, stem = corpora[0].manifest.source, out / what
    draw_cache_effect(effect, stem.with_suffix(".png"), subject=f"{source} {split} split")
    write_text(stem.with_suffix(".json"), json.dumps(data, indent=1) + "\n")
    return data


def _names(runs: Sequence[Run]) -> list[str]:
    """Name each run by its folder and its cache, or by its path if two have the same name."""
    names = []
    for run in runs:
        cache = run.recipe().cache
        names.append(f"{run.path.name} ({f'cache {cache.size}' if cache else 'no cache'})")
    if len(set(names)) < len(names):
        return [str(run.path) for run in runs]
    return names
