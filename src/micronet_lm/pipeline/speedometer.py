"""Measure, in a separate process, how fast this machine trains and reads a model of a shape.

The process reads a recipe as JSON on standard input and writes a `Speed` as JSON. It is separate so
that its memory is only that of the model. Where there is a GPU, that is what is measured.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
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
from micronet_lm.config import DistillConfig, Recipe, merge_recipe, parse_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.model import LanguageModel
from micronet_lm.training import Objective, Run, evaluate, next_word_loss
from micronet_lm.training.device import this_device, wait_for
from micronet_lm.training.hebbian import Hebbian
from micronet_lm.training.loop import make_deterministic
from micronet_lm.training.memory import keep_freed_memory
from micronet_lm.training.precision import agree_on_products, prepare_process
from micronet_lm.training.processes import joined_processes
from micronet_lm.training.trainer import Trainer

LONG = 5.0
"""Seconds from which one step is enough for a measurement; shorter ones are repeated."""

STEP_TOKENS = 4096
"""Tokens of a measured step; a longer one is estimated from some of its sequences."""

FIRST, LEAST, READ, LABELLED = 512, 2048, 8192, 256
"""Number of tokens read at first, then at least and at most, and labelled for a measurement."""

PATIENCE = 20.0
"""Seconds of reading after which fewer tokens are enough for a measurement."""


def main() -> None:
    """Measure the recipe on standard input."""
    recipe = parse_recipe(json.load(sys.stdin), origin="recipe")
    json.dump(measure(recipe), sys.stdout)


def measure(recipe: Recipe) -> dict[str, Any]:
    """Return the times of reading, labelling and training, and the memory they needed.

    Reading has a process of its own, so that neither's memory hides the other's. It is a fork,
    made before this process computes.
    """
    with get_context("fork").Pool(1) as pool:
        read = pool.apply(reading, (recipe,))
    trained = training(recipe)
    return {"step_seconds": trained.seconds, "train_memory": trained.memory, **read}


def _begin(recipe: Recipe) -> None:
    make_deterministic()
    keep_freed_memory()
    if recipe.train.precision != "float32":
        prepare_process()


def reading(recipe: Recipe) -> dict[str, Any]:
    """Return the times and the memory of reading and labelling."""
    _begin(recipe)
    text = _text(recipe)
    device = this_device()
    model = LanguageModel(recipe.model, recipe.cache).eval().to(device)
    ids = text.split("valid")
    with torch.inference_mode():
        pace = evaluate(model, ids[: FIRST + 1]).seconds / FIRST
        count = max(LEAST, min(READ, int(PATIENCE / pace)))
        token = evaluate(model, ids[: count + 1]).seconds / count
        begin = time.perf_counter()
        for piece in distributions(model, text.split("train"), range(count, count + LABELLED)):
            piece.distribution.topk(min(30, piece.distribution.shape[1]))
        wait_for(device)
        # The text read before the span is a fixed, small part of a shard.
        before = min(count, model.config.reach - 1 + (model.cache.size if model.cache else 0))
        labelling = (time.perf_counter() - begin - before * token) / LABELLED
    return {
        "read_seconds": token,
        "label_seconds": max(labelling, token),
        "read_memory": _memory(device),
    }


@dataclass(frozen=True, kw_only=True)
class Training:
    """What a training step needs."""

    seconds: float
    memory: int


def training(recipe: Recipe) -> Training:
    """Measure a step; estimate one with many tokens from two with few sequences."""
    _begin(recipe)
    text, config = _text(recipe), recipe.train
    rows = config.batch // config.accumulate
    few = max(2, STEP_TOKENS // config.window)
    if rows <= few:
        return _measured_step(recipe, text)
    one, some = (
        _measured_step(merge_recipe(recipe, {"train.batch": n, "train.accumulate": 1}), text)
        for n in (1, few)
    )
    each = max(0.0, (some.memory - one.memory) / (few - 1))
    return Training(
        seconds=some.seconds * config.batch / few,
        memory=int(some.memory + each * (rows - few)),
    )


def _measured_step(recipe: Recipe, text: Corpus) -> Training:
    with tempfile.TemporaryDirectory() as folder, joined_processes() as processes:
        plugins = [Hebbian(recipe.hebbian)] if recipe.hebbian else []
        run = Run(Path(folder))
        products = agree_on_products(recipe.train.precision, None, processes, resume="")
        objective = _objective(recipe)
        trainer = Trainer(run, recipe, text, processes, objective, plugins, products=products)
        seconds = _step(trainer, processes.device)
        if seconds < LONG:
            seconds = min(_step(trainer, processes.device) for _ in range(2))
        memory = _memory(processes.device)
    return Training(seconds=seconds, memory=memory)


def _step(trainer: Trainer, device: torch.device) -> float:
    begin = time.perf_counter()
    trainer.step()
    wait_for(device)
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


def _memory(device: torch.device) -> int:
    """Return the peak memory of this process in bytes, or that on the GPU where there is one."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_reserved(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
