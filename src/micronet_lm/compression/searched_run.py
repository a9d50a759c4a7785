"""What a cache search leaves behind: a run folder of its own, ready for what reads runs."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from micronet_lm.compression.cache_search import Point, Search
from micronet_lm.config import merge_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import RunError
from micronet_lm.files import write_text
from micronet_lm.model import Cache
from micronet_lm.training import Run, perplexity
from micronet_lm.training.checkpoint import (
    model_tensors,
    read_checkpoint,
    write_checkpoint,
)


def check_place(out: Path) -> None:
    """Refuse a folder that holds anything but an earlier search."""
    run = Run(out)
    if run.recipe_file.is_file() and not run.search_file.is_file():
        raise RunError(f"{out} holds a run that was trained; choose another --out")


def write_searched_run(
    run: Run, which: Literal["best", "last"], corpus: Corpus, search: Search, out: Path
) -> Run:
    """Write the run's model with the found size, θ and λ, and the whole search beside it."""
    check_place(out)
    found = search.found
    values = {"cache.size": search.size, "cache.theta": found.theta, "cache.lam": found.lam}
    recipe = merge_recipe(run.recipe(), values)
    assert recipe.cache is not None  # noqa: S101
    model = run.model(which)
    model.cache = Cache(recipe.cache)
    source = run.best if which == "best" else run.last
    progress = read_checkpoint(source, prefix="none").progress
    searched = Run(out)
    write_text(searched.search_file, json.dumps(search_as_json(run, which, search)) + "\n")
    write_checkpoint(searched.best, model_tensors(model), replace(progress, best_loss=found.loss))
    searched.begin(recipe, corpus)  # last: now it is a run
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
