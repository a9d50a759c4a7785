"""Write the result of a cache search as a run folder."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from micronet_lm.compression.cache_search import Point, Search
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
) -> dict[str, Any]:
    """Write the run's model with the found cache parameters, and the whole search.

    Return the contents of `search.json`.
    """
    found = search.found
    values = {
        "cache.size": search.size,
        "cache.ramp": search.ramp,
        "cache.theta": found.theta,
        "cache.lam": found.lam,
    }
    recipe = merge_recipe(run.recipe(), values)
    assert recipe.cache is not None  # noqa: S101
    model = run.model(which)
    model.cache = Cache(recipe.cache)
    progress = run.progress(which)
    if split == "valid":  # another split's loss is not a validation loss
        progress = replace(progress, best_loss=found.loss)
    record = {"verb": "search-cache", "run": str(run.path), "checkpoint": which, "split": split}
    Run(out).write_result(record, recipe, corpus, model, progress)
    whole = {
        **record,
        "size": search.size,
        "ramp": search.ramp,
        "before": {"loss": search.before, "perplexity": perplexity(search.before)},
        "start": _point(search.start),
        "found": _point(found),
        "points": [_point(point) for point in search.points],
    }
    write_text(out / SEARCH, json.dumps(whole) + "\n")
    return whole


def _point(point: Point) -> dict[str, float]:
    return {**asdict(point), "perplexity": point.perplexity}
