"""Measure, in a separate process, how fast this machine trains and reads a model of a shape.

The process reads a recipe as JSON on standard input and writes a `Speed` as JSON. It is separate so
that its memory is only that of the model.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from micronet_lm.compression.distillation import Distillation
from micronet_lm.compression.softlabels import SoftLabels
from micronet_lm.compression.softlabels.store import Labels
from micronet_lm.compression.softlabels.teacher import distributions
from micronet_lm.config import DistillConfig, Recipe, parse_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.model import LanguageModel
from micronet_lm.training import Objective, Run, evaluate, next_word_loss
from micronet_lm.training.hebbian import Hebbian
from micronet_lm.training.loop import make_deterministic
from micronet_lm.training.memory import keep_freed_memory
from micronet_lm.training.precision import agree_on_products, prepare_process
from micronet_lm.training.processes import joined_processes
from micronet_lm.training.trainer import Trainer

LONG = 5.0
"""Seconds from which one step is enough for a measurement; shorter ones are repeated."""

READ, LABELLED = 8192, 256
"""Number of tokens read, and labelled, for a measurement."""


def main() -> None:
    """Measure the recipe on standard input."""
    recipe = parse_recipe(json.load(sys.stdin), origin="recipe")
    json.dump(measure(recipe), sys.stdout)


def measure(recipe: Recipe) -> dict[str, Any]:
    """Return the times of reading, labelling and training, and the memory they needed."""
    make_deterministic()
    keep_freed_memory()
    if recipe.train.precision != "float32":
        prepare_process()
    text = _text(recipe)
    model = LanguageModel(recipe.model, recipe.cache).eval()
    ids = text.split("valid")
    with torch.inference_mode():
        evaluate(model, ids[:512])
        reading = evaluate(model, ids).seconds / READ
        read_memory = _memory()
        begin = time.perf_counter()
        for piece in distributions(model, text.split("train"), range(READ, READ + LABELLED)):
            piece.distribution.topk(min(30, piece.distribution.shape[1]))
        # The text read before the span is a fixed, small part of a shard.
        before = min(READ, model.config.reach - 1 + (model.cache.size if model.cache else 0))
        labelling = (time.perf_counter() - begin - before * reading) / LABELLED
    del model
    with tempfile.TemporaryDirectory() as folder, joined_processes() as processes:
        plugins = [Hebbian(recipe.hebbian)] if recipe.hebbian else []
        run = Run(Path(folder))
        products = agree_on_products(recipe.train.precision, None, processes, resume="")
        objective = _objective(recipe)
        trainer = Trainer(run, recipe, text, processes, objective, plugins, products=products)
        seconds = _step(trainer)
        if seconds < LONG:
            seconds = min(_step(trainer) for _ in range(2))
    return {
        "step_seconds": seconds,
        "read_seconds": reading,
        "label_seconds": max(labelling, reading),
        "read_memory": read_memory,
        "train_memory": _memory(),
    }


def _step(trainer: Trainer) -> float:
    begin = time.perf_counter()
    trainer.step()
    return time.perf_counter() - begin


def _text(recipe: Recipe) -> Corpus:
    """Return a random corpus with word frequencies by Zipf's law."""
    words = recipe.model.bounds[-1]
    shares = 1 / np.arange(1, words + 1)
    random = np.random.default_rng(0)
    config = recipe.train
    length = max(READ + LABELLED, 2 * config.window, config.batch * config.window) + 2

    def draw(count: int) -> NDArray[np.uint32]:
        return random.choice(words, count, p=shares / shares.sum()).astype(np.uint32)

    splits = {"train": draw(length), "valid": draw(READ + 1)}
    counts = tuple(int(share) for share in 1 + 1e6 * shares)
    # Any word may stand for a line's end.
    vocabulary = SimpleNamespace(counts=counts, id=lambda _: 0)
    return cast("Corpus", SimpleNamespace(split=splits.__getitem__, vocabulary=vocabulary))


class _AnyLabels:
    """Random soft labels, which cost as much as real ones."""

    def __init__(self, words: int) -> None:
        self._words = words

    def check_recipe(self, config: DistillConfig) -> None:
        """Accept any recipe."""

    def windows(self, starts: Sequence[int], length: int, count: int) -> Labels:
        """Return labels of the right shape."""
        shape = (len(starts), length, count)
        words = np.random.default_rng(0).zipf(1.5, shape) % self._words
        return Labels(words.astype(np.int64), np.full(shape, 1 / count, dtype=np.float32))


def _objective(recipe: Recipe) -> Objective:
    if recipe.distill is None:
        return next_word_loss
    labels = cast("SoftLabels", _AnyLabels(recipe.model.bounds[-1]))
    return Distillation(labels, recipe.distill, recipe.train.steps)


def _memory() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
