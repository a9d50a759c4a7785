"""Compare a distilled training step with the plain one: same model and batch, alternating.

The model is `paper/student` with WikiText-2's vocabulary. Labels are drawn without repetition with
probabilities like Zipf's over all words, so that nearly every token has labels in every bin: more
than a teacher's, which are mostly frequent words. At a ratio of 1 distillation would be free.

    python benchmarks/distillation.py --json
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from micronet_lm.compression import Distillation
from micronet_lm.compression.softlabels.store import Labels
from micronet_lm.config import CacheConfig, DistillConfig, Recipe, load_recipe
from micronet_lm.model import LanguageModel
from micronet_lm.training import Batch, Objective, next_word_loss
from micronet_lm.training.loop import make_deterministic
from micronet_lm.training.memory import keep_freed_memory
from micronet_lm.training.optimizer import Optimizer
from micronet_lm.training.precision import Products, autocast, working_products

VOCABULARY = 33_278
"""Words of WikiText-2."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--preset", default="paper/student")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--labels", type=int, default=30, help="labels per token")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds of each")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], nargs="*")
    parser.add_argument("--cache", type=int, default=2000, help="size of the cache in its rounds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    overrides = {"train.batch": arguments.batch, "model.vocabulary": VOCABULARY}
    recipe = load_recipe(arguments.preset, overrides)
    names = arguments.precision or ["float32", "bfloat16"]
    chosen = [products for products in working_products() if products.precision in names]
    report = {
        "preset": arguments.preset,
        "vocabulary": VOCABULARY,
        "batch": recipe.train.batch,
        "window": recipe.train.window,
        "labels": arguments.labels,
        "threads": torch.get_num_threads(),
        "results": [
            measure(recipe, products, cache, arguments.labels, arguments.rounds)
            for products in chosen
            for cache in (0, arguments.cache)
        ],
    }
    if arguments.json:
        print(json.dumps(report))
        return
    print(f"{arguments.preset}, batch {recipe.train.batch} x {recipe.train.window} tokens,")
    print(f"{arguments.labels} labels, {report['threads']} threads, {arguments.rounds} rounds\n")
    print("precision   cache   plain (ms)   distilled (ms)   ratio")
    for row in report["results"]:
        print(
            f"{row['precision']:<12}{row['cache']:>5}{1000 * row['plain_seconds']:>13,.0f}"
            f"{1000 * row['distilled_seconds']:>17,.0f}{row['ratio']:>8.2f}"
        )


def measure(
    recipe: Recipe, products: Products, cache: int, count: int, rounds: int
) -> dict[str, Any]:
    make_deterministic()
    keep_freed_memory()
    torch.manual_seed(0)
    model = LanguageModel(recipe.model, CacheConfig(size=cache) if cache else None)
    random = np.random.default_rng(0)
    words = torch.from_numpy(zipf(random, (recipe.train.batch, recipe.train.window + 1)))
    batch = Batch(
        inputs=words[:, :-1],
        targets=words[:, 1:],
        starts=torch.arange(recipe.train.batch) * recipe.train.window,
        step=0,
        fresh=True,
    )
    labels = DrawnLabels(random, batch.targets.shape, count)
    distillation = Distillation(labels, DistillConfig(top_k=count), steps=1000)  # type: ignore[arg-type]
    optimizer = Optimizer(model, recipe.train)
    plain = training_step(model, batch, next_word_loss, optimizer, products)
    distilled = training_step(model, batch, distillation, optimizer, products)
    times: list[tuple[float, float]] = []
    for turn in range(-2, rounds):  # two rounds to warm up
        both = (timed(plain), timed(distilled))
        times += [both] if turn >= 0 else []
    return {
        "precision": products.precision,
        "cache": cache,
        "plain_seconds": statistics.median(one for one, _ in times),
        "distilled_seconds": statistics.median(other for _, other in times),
        "ratio": statistics.median(other / one for one, other in times),
    }


class DrawnLabels:
    """Labels in memory instead of a folder."""

    def __init__(self, random: np.random.Generator, shape: Sequence[int], count: int) -> None:
        noise = random.gumbel(size=(1024, VOCABULARY)).astype(np.float32)
        best = np.argsort(-(noise + np.log(chances())), axis=1)[:, :count]  # without repetition
        rows = random.integers(len(best), size=tuple(shape))
        weights = np.sort(random.dirichlet(np.full(count, 0.3), size=tuple(shape)))[..., ::-1]
        self._labels = Labels(best[rows], weights.astype(np.float32))

    def check_recipe(self, config: DistillConfig) -> None:
        """Accept any recipe."""

    def windows(self, starts: Sequence[int], length: int, count: int) -> Labels:
        """Return the labels of the only batch."""
        return self._labels


def chances() -> NDArray[np.float64]:
    weights: NDArray[np.float64] = 1 / (np.arange(VOCABULARY) + 2.7)
    total: float = weights.sum()
    return weights / total


def zipf(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
    words: NDArray[np.int64] = random.choice(VOCABULARY, size=shape, p=chances())
    return words


def training_step(
    model: LanguageModel,
    batch: Batch,
    objective: Objective,
    optimizer: Optimizer,
    products: Products,
) -> Callable[[], object]:
    def step() -> None:
        with autocast(products, torch.device("cpu")):
            hidden, _ = model(batch.inputs)
            loss = objective(model, hidden, batch, memory=None)
        loss.total.backward()
        optimizer.step(1e-4)

    return step


def timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
