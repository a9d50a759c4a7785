"""Write the result of a cache search as a run folder."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from micronet_lm.compression.cache_search import Confirmation, Point, Search
from micronet_lm.compression.temperature import fold_temperature
from micronet_lm.config import merge_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.files import write_text
from micronet_lm.model import Cache
from micronet_lm.runs import Which
from micronet_lm.runs.files import SEARCH
from micronet_lm.training import Run, perplexity


def write_searched_run(
    run: Run,
    which: Which,
    corpus: Corpus,
    split: str,
    search: Search,
    out: Path,
    *,
    temperature: float = 1.0,
) -> dict[str, Any]:
    """Write the run's model with the found cache parameters, and the whole search.

    `temperature` is folded into the weights.

    Return the contents of `search.json`.
    """
    kept = search.kept
    values: dict[str, Any] = {"cache": None}
    if kept is not None:
        values = {
            "cache.size": search.kept_size,
            "cache.ramp": search.ramp,
            "cache.fade": search.kept_fade,
            "cache.theta": kept.theta,
            "cache.lam": kept.lam,
        }
    recipe = merge_recipe(run.recipe(), values)
    model = run.model(which)
    fold_temperature(model, temperature)
    device = next(model.parameters()).device
    model.cache = Cache(recipe.cache).to(device) if recipe.cache else None
    progress = run.progress(which)
    if split == "valid":  # another split's loss is no validation loss
        progress = replace(progress, best_loss=kept.loss if kept else search.before)
    record = {"verb": "search-cache", "run": str(run.path), "checkpoint": which, "split": split}
    Run(out).write_result(record, recipe, corpus, model, progress, run)
    whole = {
        **record,
        "size": search.size,
        "ramp": search.ramp,
        "fade": search.fade,
        "temperature": temperature,
        "before": {"loss": search.before, "perplexity": perplexity(search.before)},
        "start": _point(search.start),
        "found": _point(search.found),
        "kept": None if kept is None else {"size": search.kept_size, **_point(kept)},
        "confirmation": _confirmation(search.confirmation),
        "points": [_point(point) for point in search.points],
    }
    write_text(out / SEARCH, json.dumps(whole) + "\n")
    return whole


def confirmation_sentence(record: Mapping[str, Any]) -> str | None:
    """Return a sentence on the result of the other half; None if the whole split was searched."""
    confirmation = record.get("confirmation")
    if confirmation is None:
        return None
    trained, found = (confirmation[key]["perplexity"] for key in ("trained", "found"))
    better = confirmation["kept"] == "found"
    return (
        "Searched on the first half of the split; on the second half perplexity is "
        f"{found:,.2f} with what was found and {trained:,.2f} as trained, so "
        f"{'what was found is kept' if better else 'the cache stays as it was trained'}."
    )


def _confirmation(confirmation: Confirmation | None) -> dict[str, Any] | None:
    if confirmation is None:
        return None
    losses = {"trained": confirmation.trained, "found": confirmation.found}
    return {
        "kept": "found" if confirmation.better else "trained",
        **{key: {"loss": loss, "perplexity": perplexity(loss)} for key, loss in losses.items()},
    }


def _point(point: Point) -> dict[str, float]:
    return {**asdict(point), "perplexity": point.perplexity}
