"""Time training steps with a prefix before the window, in turn with steps without one.

A prefix (`train.prefix`) is as long as the cache: it is read without gradients and fills keys,
values and cache. Words are random, frequent ones likelier. Times are the processor's, so that other
work on the machine takes no part; use one thread.

    OMP_NUM_THREADS=1 python benchmarks/prefix.py --json
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from micronet_lm.config import CacheConfig, Recipe, load_recipe
from micronet_lm.model import LanguageModel
from micronet_lm.training import Batch, next_word_loss
from micronet_lm.training.loop import make_deterministic
from micronet_lm.training.memory import keep_freed_memory
from micronet_lm.training.optimizer import Optimizer

WORDS = 33_278
"""Size of WikiText-2's vocabulary."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--preset", default="wikitext-2/paper/student")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 2000], help="of the cache")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds of each")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    recipe = load_recipe(arguments.preset, {"model.vocabulary": WORDS})
    make_deterministic()
    keep_freed_memory()
    results = [measure(recipe, size, arguments.rounds) for size in arguments.sizes]
    if arguments.json:
        facts = {"preset": arguments.preset, "threads": torch.get_num_threads()}
        print(json.dumps({**facts, "results": results}))
        return
    print(f"{arguments.preset}, batch {recipe.train.batch} x {recipe.train.window} tokens\n")
    print("cache   without (ms)   with a prefix (ms)   ratio")
    for row in results:
        print(
            f"{row['cache']:>5,}{1000 * row['plain_seconds']:>15,.0f}"
            f"{1000 * row['prefix_seconds']:>21,.0f}{row['ratio']:>8.2f}"
        )


def measure(recipe: Recipe, size: int, rounds: int) -> dict[str, float]:
    steps = [training_step(recipe, size, prefix) for prefix in (0, size)]
    rows = [[timed(step) for step in steps] for _ in range(rounds + 1)][1:]  # one to warm up
    plain, more = (statistics.median(times) for times in zip(*rows, strict=True))
    ratio = statistics.median(own / other for other, own in rows)
    return {"cache": size, "plain_seconds": plain, "prefix_seconds": more, "ratio": ratio}


def training_step(recipe: Recipe, size: int, prefix: int) -> Callable[[], object]:
    """Return a step of a new model with a cache, after a prefix of that many tokens."""
    torch.manual_seed(0)
    model = LanguageModel(recipe.model, CacheConfig(size=size))
    optimizer = Optimizer(model, recipe.train)
    shape = (recipe.train.batch, prefix + recipe.train.window + 1)
    ranks = np.exp(np.random.default_rng(0).uniform(0, np.log(WORDS), shape)).astype(np.int64)
    words = torch.from_numpy(np.minimum(ranks, WORDS) - 1)
    before, inputs, targets = words[:, :prefix], words[:, prefix:-1], words[:, prefix + 1 :]
    starts = torch.zeros(len(words)).long()
    batch = Batch(inputs=inputs, targets=targets, starts=starts, step=0, fresh=True)

    def step() -> None:
        state, memory = None, None
        if prefix:
            with torch.no_grad():
                hidden, state = model(before)
                memory = model.remember(None, hidden, words[:, 1 : prefix + 1])
        hidden, _ = model(inputs, state)
        next_word_loss(model, hidden, batch, memory).total.backward()
        optimizer.step(1e-4)

    return step


def timed(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


if __name__ == "__main__":
    main()
