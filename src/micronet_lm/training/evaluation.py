"""Perplexity by the contract: every token after the first is predicted once, in order.

The text is one stream. Chunks carry the state over, so their size changes nothing but the speed.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from micronet_lm.errors import CorpusError
from micronet_lm.model import LanguageModel

CHUNK = 4032
"""Tokens that are computed at once by default."""


@dataclass(frozen=True, kw_only=True)
class BinLoss:
    """The part of a loss that falls to the words of one bin."""

    first: int
    """The bin's first word."""

    tokens: int
    """Predicted tokens that lie in the bin."""

    loss: float | None
    """Their mean loss in nats; nothing when there are none."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How well a model predicts a text."""

    loss: float
    """Mean negative log-probability a predicted token, in nats."""

    perplexity: float
    """exp(loss)."""

    bits_per_token: float
    """The loss in bits."""

    tokens: int
    """Predicted tokens: all of the text but the first."""

    seconds: float
    """Wall-clock time."""

    bins: tuple[BinLoss, ...]
    """The loss by bin of the vocabulary."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return asdict(self)


@torch.inference_mode()
def token_losses(
    model: LanguageModel,
    ids: NDArray[np.unsignedinteger],
    *,
    chunk: int = CHUNK,
    advance: Callable[[int], None] | None = None,
) -> Tensor:
    """Negative log-probability of every token of a text but the first, in fp32 on the CPU."""
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    losses = []
    state = None
    try:
        for low in range(0, len(ids) - 1, chunk):
            piece = ids[low : min(low + chunk, len(ids) - 1) + 1].astype(np.int64)
            words = torch.from_numpy(piece).to(device)
            hidden, state = model(words[None, :-1], state)
            losses.append(-model.log_probability(hidden[0], words[1:]).cpu())
            if advance is not None:
                advance(len(piece) - 1)
    finally:
        model.train(training)
    return torch.cat(losses)


def evaluate(
    model: LanguageModel,
    ids: NDArray[np.unsignedinteger],
    *,
    chunk: int = CHUNK,
    advance: Callable[[int], None] | None = None,
) -> Evaluation:
    """Measure the perplexity of a text."""
    if len(ids) < 2:
        raise CorpusError(f"a text of {len(ids)} tokens has nothing to predict; it needs 2 or more")
    begin = time.perf_counter()
    losses = token_losses(model, ids, chunk=chunk, advance=advance).double()
    seconds = time.perf_counter() - begin
    loss = float(losses.mean())
    targets = torch.from_numpy(ids[1:].astype(np.int64))
    bins = []
    for low, high in pairwise(model.config.bounds):
        inside = losses[(targets >= low) & (targets < high)]
        mean = float(inside.mean()) if len(inside) else None
        bins.append(BinLoss(first=low, tokens=len(inside), loss=mean))
    return Evaluation(
        loss=loss,
        perplexity=perplexity(loss),
        bits_per_token=loss / math.log(2),
        tokens=len(losses),
        seconds=seconds,
        bins=tuple(bins),
    )


def perplexity(loss: float) -> float:
    """Return exp(loss), or infinity where that overflows."""
    return math.exp(loss) if loss < 700 else math.inf
