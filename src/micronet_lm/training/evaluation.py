"""Perplexity of the torch model: every token after the first is predicted once, in order.

The text is one stream. Chunks pass on the state and the cache, so their size changes only the
speed.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from micronet_lm.config import ModelConfig, Recipe, merge_recipe
from micronet_lm.errors import CorpusError
from micronet_lm.evaluation import BinLoss, Evaluation, perplexity
from micronet_lm.model import Cache, LanguageModel, Memory
from micronet_lm.model.sizes import sizes_for
from micronet_lm.training.device import on_device

__all__ = [
    "BinLoss",
    "Evaluation",
    "change_cache",
    "check_ids",
    "evaluate",
    "hidden_states",
    "perplexity",
    "token_losses",
]


def hidden_states(
    model: LanguageModel, ids: NDArray[np.unsignedinteger], *, chunk: int | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Read a text in chunks; yield hidden states (N, D) and the words (N) that follow them.

    Without `chunk`, a chunk has the size that suits the model's device.
    """
    check_ids(ids, model.config)
    device = next(model.parameters()).device
    chunk = chunk or sizes_for(device).chunk
    training = model.training
    model.eval()
    state = None
    try:
        for low in range(0, len(ids) - 1, chunk):
            piece = ids[low : min(low + chunk, len(ids) - 1) + 1].astype(np.int64)
            words = on_device(piece, device)
            with torch.inference_mode():
                hidden, state = model(words[None, :-1], state)
            yield hidden[0], words[1:]
    finally:
        model.train(training)


@torch.inference_mode()
def token_losses(
    model: LanguageModel, ids: NDArray[np.unsignedinteger], *, chunk: int | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield negative log-probabilities (N) and their words (N), chunk by chunk, on the CPU."""
    memory: Memory | None = None
    for hidden, words in hidden_states(model, ids, chunk=chunk):
        states, following = hidden.unsqueeze(0), words.unsqueeze(0)  # one text: B = 1
        log_probability = model.log_probability(states, following, memory)
        memory = model.remember(memory, states, following)
        yield -log_probability[0].cpu(), words.cpu()


def change_cache(model: LanguageModel, recipe: Recipe, changes: Mapping[str, Any]) -> None:
    """Give a model of a recipe another cache; values not in `changes` stay as learned."""
    learned = {}
    if model.cache is not None:
        learned = {"cache.theta": model.cache.theta.item(), "cache.lam": model.cache.lam.item()}
    config = merge_recipe(recipe, {**learned, **changes}).cache
    device = next(model.parameters()).device
    model.cache = None if config is None else Cache(config).to(device)


def evaluate(
    model: LanguageModel,
    ids: NDArray[np.unsignedinteger],
    *,
    chunk: int | None = None,
    advance: Callable[[int], None] | None = None,
) -> Evaluation:
    """Measure the perplexity of a text, in memory that does not grow with it."""
    begin = time.perf_counter()
    bounds = model.config.bounds
    inner = torch.tensor(bounds[1:-1])
    tokens = torch.zeros(len(bounds) - 1, dtype=torch.long)
    totals = torch.zeros(len(bounds) - 1, dtype=torch.float64)
    for losses, words in token_losses(model, ids, chunk=chunk):
        number = torch.bucketize(words, inner, right=True)  # the bin of each word
        tokens += torch.bincount(number, minlength=len(tokens))
        totals.index_add_(0, number, losses.double())
        if advance is not None:
            advance(len(words))
    loss = float(totals.sum() / tokens.sum())
    return Evaluation(
        loss=loss,
        perplexity=perplexity(loss),
        bits_per_token=loss / math.log(2),
        tokens=int(tokens.sum()),
        seconds=time.perf_counter() - begin,
        bins=tuple(
            BinLoss(first=low, tokens=int(count), loss=float(total / count) if count else None)
            for low, count, total in zip(bounds, tokens, totals, strict=False)
        ),
    )


def check_ids(ids: NDArray[np.unsignedinteger], config: ModelConfig) -> None:
    """Refuse a text without tokens to predict, or with words outside the vocabulary."""
    if len(ids) < 2:
        raise CorpusError(f"a text of {len(ids)} tokens has nothing to predict: it needs 2 or more")
    largest = int(ids.max())
    if largest >= config.bounds[-1]:
        raise CorpusError(
            f"word {largest} is out of range for a vocabulary of {config.bounds[-1]:,}: "
            "give the model's own corpus, or build it again if it is damaged"
        )
