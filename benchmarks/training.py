"""Compare a training step of `paper/student` with its matrix products alone.

All alternate in the same run. The products are those that the formulas need: of every
linear map the forward product and the two gradients, each once, and of every attention layer the
scores, the position scores, the mixing of values and their gradients, in the blocks that the model
uses. Nothing else is counted: no bias, no softmax, no normalization, no optimizer, no memory that
has to be fetched first, no product that the model computes a second time. `share` is the
products' time over the step's: 1 would be a step that does nothing but multiply matrices.

`with techniques` is the same step with a full cache of 2000 hidden states, and with the Hebbian
update of rarely seen words; `ratio` is its time over the plain step's.

    python benchmarks/training.py --json
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from micronet_lm.config import CacheConfig, HebbianConfig, ModelConfig, Recipe, load_recipe
from micronet_lm.model import LanguageModel, Memory
from micronet_lm.model.sizes import CPU
from micronet_lm.training import Batch, next_word_loss
from micronet_lm.training.hebbian import Hebbian
from micronet_lm.training.loop import make_deterministic
from micronet_lm.training.memory import keep_freed_memory
from micronet_lm.training.optimizer import Optimizer
from micronet_lm.training.precision import Products, autocast, working_products
from micronet_lm.training.processes import Processes

TEST_TOKENS_BY_BIN = (198_232, 35_479, 11_858)
"""Words of WikiText-103's test split in the bins of the paper's student."""

PIECE = 4 << 20
"""Size in bytes of the pieces in which results of a product are written, as fast code does."""


@dataclass(frozen=True)
class Product:
    """(groups, rows, inner) × (groups, inner, columns), `times` per step."""

    what: str
    groups: int
    rows: int
    inner: int
    columns: int
    times: int = 1

    @property
    def operations(self) -> int:
        """Number of multiplies and adds of all times together."""
        return 2 * self.groups * self.rows * self.inner * self.columns * self.times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--preset", default="paper/student")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds of each")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], nargs="*")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    recipe = load_recipe(arguments.preset, {"train.batch": arguments.batch})
    names = arguments.precision or ["float32", "bfloat16"]
    chosen = [products for products in working_products() if products.precision in names]
    report = {
        "preset": arguments.preset,
        "batch": recipe.train.batch,
        "window": recipe.train.window,
        "threads": torch.get_num_threads(),
        "results": [measure(recipe, products, arguments.rounds) for products in chosen],
    }
    if arguments.json:
        print(json.dumps(report))
        return
    print(f"{arguments.preset}, batch {recipe.train.batch} x {recipe.train.window} tokens,")
    print(f"{report['threads']} threads, medians of {arguments.rounds} rounds\n")
    print(
        "precision   tokens/s   step (ms)   products (ms)   GFLOP/s   share   "
        "with techniques (ms)   ratio"
    )
    for row in report["results"]:
        print(
            f"{row['precision']:<10}{row['tokens_per_second']:>10,.0f}"
            f"{1000 * row['step_seconds']:>12,.0f}{1000 * row['product_seconds']:>16,.0f}"
            f"{row['gigaflops']:>10,.0f}{row['share']:>8.2f}"
            f"{1000 * row['technique_seconds']:>23,.0f}{row['ratio']:>8.2f}"
        )


def measure(recipe: Recipe, products: Products, rounds: int) -> dict[str, float | str]:
    make_deterministic()
    keep_freed_memory()
    torch.manual_seed(0)
    batch = draw_batch(recipe)
    step = training_step(recipe, batch, products)
    complete = training_step(
        recipe.model_copy(update={"cache": CacheConfig(size=2000), "hebbian": HebbianConfig()}),
        batch,
        products,
    )
    dtype = torch.bfloat16 if products.precision == "bfloat16" else torch.float32
    needed = list(needed_products(recipe.model, batch))
    multiply = [prepared(product, dtype) for product in needed]
    rows = []
    for turn in range(-2, rounds):  # two rounds to warm up
        row = (timed(step), timed(complete), sum(timed(run) for run in multiply))
        if turn >= 0:
            rows.append(row)
    seconds, technique, alone = (statistics.median(times) for times in zip(*rows, strict=True))
    return {
        "precision": products.precision,
        "tokens_per_second": batch.inputs.numel() / seconds,
        "step_seconds": seconds,
        "product_seconds": alone,
        "gigaflops": sum(p.operations for p in needed) / alone / 1e9,
        "share": statistics.median(products / plain for plain, _, products in rows),
        "technique_seconds": technique,
        "ratio": statistics.median(more / plain for plain, more, _ in rows),
    }


def draw_batch(recipe: Recipe) -> Batch:
    random = np.random.default_rng(0)
    shares = np.array(TEST_TOKENS_BY_BIN) / sum(TEST_TOKENS_BY_BIN)
    bounds = np.array(recipe.model.bounds)
    shape = (recipe.train.batch, recipe.train.window + 1)
    number = random.choice(len(shares), size=shape, p=shares)
    words = torch.from_numpy(random.integers(bounds[number], bounds[number + 1]))
    return Batch(
        inputs=words[:, :-1],
        targets=words[:, 1:],
        starts=torch.zeros(shape[0]).long(),
        step=0,
        fresh=True,
    )


def training_step(recipe: Recipe, batch: Batch, products: Products) -> Callable[[], object]:
    """Return a step of a new model, with the recipe's cache and Hebbian update."""
    device = torch.device("cpu")
    model = LanguageModel(recipe.model, recipe.cache)
    optimizer = Optimizer(model, recipe.train)
    hebbian = Hebbian(recipe.hebbian) if recipe.hebbian else None
    if hebbian:
        hebbian.prepare(model, Processes(rank=0, count=1, device=device))
    memory = None
    if recipe.cache:  # full, as it is in all but the first steps of a stream
        rows, size = len(batch.inputs), recipe.cache.size
        states = torch.randn(rows, size, recipe.model.width)
        memory = Memory(states=states, words=batch.targets.repeat(1, 2)[:, :size])

    def step() -> None:
        with autocast(products, device):
            hidden, _ = model(batch.inputs)
            loss = next_word_loss(model, hidden, batch, memory)
            model.remember(memory, hidden, batch.targets)
        loss.total.backward()
        optimizer.step(1e-4)
        if hebbian:
            hebbian.after_step(model, hidden.detach(), batch)

    return step


def needed_products(config: ModelConfig, batch: Batch) -> Iterator[Product]:
    tokens, (sequences, time) = batch.inputs.numel(), batch.inputs.shape
    layers, heads, key, value = config.layers, config.heads, config.key_width, config.value_width
    yield from linear("qkv", tokens, config.width, heads * (2 * key + value), layers)
    yield from linear("attention output", tokens, heads * value, config.width, layers)
    yield from linear("ffn inner", tokens, config.width, config.ffn_width, layers)
    yield from linear("ffn outer", tokens, config.ffn_width, config.width, layers)
    block = CPU.attention_queries
    groups = sequences * heads * -(-time // block)
    span = block + config.context - 1
    yield Product("scores", groups, block, key, span, layers)
    yield Product("scores, gradient of queries", groups, block, span, key, layers)
    yield Product("scores, gradient of keys", groups, span, block, key, layers)
    yield Product("mixing", groups, block, span, value, layers)
    yield Product("mixing, gradient of values", groups, span, block, value, layers)
    yield Product("mixing, gradient of weights", groups, block, value, span, layers)
    yield from linear("positions", tokens * heads, key, config.context, layers)
    yield from linear("first bin", tokens, config.width, config.bounds[1] + len(config.cutoffs), 1)
    for number, (low, high) in enumerate(pairwise(config.bounds)):
        width = config.embedding_widths[number]
        if width != config.width:
            inputs = int(((batch.inputs >= low) & (batch.inputs < high)).sum())
            yield from linear(f"input projection {number}", inputs, width, config.width, 1)
        if number:
            targets = int(((batch.targets >= low) & (batch.targets < high)).sum())
            yield from linear(f"output projection {number}", targets, config.width, width, 1)
            yield from linear(f"bin {number}", targets, width, high - low, 1)


def linear(what: str, tokens: int, inputs: int, outputs: int, times: int) -> Iterator[Product]:
    yield Product(what, 1, tokens, inputs, outputs, times)
    yield Product(f"{what}, gradient of inputs", 1, tokens, outputs, inputs, times)
    yield Product(f"{what}, gradient of weights", 1, outputs, tokens, inputs, times)


def prepared(product: Product, dtype: torch.dtype) -> Callable[[], object]:
    """Make the operands, and return what multiplies them as often as a step does."""
    p = product
    left = torch.randn(p.groups, p.rows, p.inner).to(dtype)
    right = torch.randn(p.groups, p.inner, p.columns).to(dtype)
    if p.groups > 1:
        out = torch.empty(p.groups, p.rows, p.columns, dtype=dtype)
        return lambda: [torch.bmm(left, right, out=out) for _ in range(p.times)]
    # A tall or wide result is written piece by piece into the same small memory.
    size = max(256, PIECE // (dtype.itemsize * min(p.rows, p.columns)))
    tall = p.rows >= p.columns
    pieces: list[tuple[Tensor, Tensor, Tensor]] = []
    store = torch.empty(size * min(p.rows, p.columns), dtype=dtype)
    for low in range(0, max(p.rows, p.columns), size):
        a = left[0, low : low + size] if tall else left[0]
        b = right[0] if tall else right[0, :, low : low + size]
        pieces.append((a, b, store[: len(a) * b.shape[1]].view(len(a), b.shape[1])))
    return lambda: [torch.mm(a, b, out=c) for _ in range(p.times) for a, b, c in pieces]


def timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
