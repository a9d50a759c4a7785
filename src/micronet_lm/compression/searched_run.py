"""What a cache search leaves behind: a run folder of its own, ready for what reads runs."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from micronet_lm.compression.cache_search import Point, Search
from micronet_lm.config import merge_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.files import write_text
from micronet_lm.model import Cache
from micronet_lm.training import Run, perplexity

FILE = "search.json"
"""Every point that was visited, in the folder of the result."""


def write_searched_run(
    run: Run, which: Literal["best", "last"], corpus: Corpus, search: Search, out: Path
) -> Run:
    """Write the run's model with the found size, θ and λ, and the whole search beside it."""
    found = search.found
    values = {"cache.size": search.size, "cache.theta": found.theta, "cache.lam": found.lam}
    recipe = merge_recipe(run.recipe(), values)
    assert recipe.cache is not None  # noqa: S101
    model = run.model(which)
    model.cache = Cache(recipe.cache)
    searched = Run(out)
    searched.check_place()
    write_text(out / FILE, json.dumps(search_as_json(run, which, search)) + "\n")
    progress = replace(run.progress(which), best_loss=found.loss)
    searched.write_result("search-cache", recipe, corpus, model, progress)
    return searched


def search_as_json(run: Run, which: str, search: Search) -> dict[str, object]:
    """Return what a search found, and every point that it visited, as plain values."""
    return {
        "run": str(run.path),
        "checkpoint": which,
        "size": search.size,
        "before": {"loss": search.before, "perplexity": perplexity(search.before)},
        "start": _point(search.start),
        "found": _point(search.found),
        "points": [_point(point) for point in search.points],
    }


def _point(point: Point) -> dict[str, float]:
    return {**asdict(point), "perplexity": point.perplexity}
