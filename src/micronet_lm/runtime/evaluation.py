"""Perplexity with an engine: every token after the first is predicted exactly once."""

import json
import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from micronet_lm.evaluation import BinLoss, Evaluation, perplexity
from micronet_lm.runtime.engine import Engine, Ids


def evaluate_engine(engine: Engine, ids: Ids, threads: int = 1) -> Evaluation:
    """Measure the perplexity of a text of ids."""
    begin = time.perf_counter()
    losses = -engine.score(ids, threads).astype(np.float64)
    seconds = time.perf_counter() - begin
    loss = float(losses.mean())
    return Evaluation(
        loss=loss,
        perplexity=perplexity(loss),
        bits_per_token=loss / math.log(2),
        tokens=len(losses),
        seconds=seconds,
        bins=_bins(json.loads(engine.metadata)["model"]["cutoffs"], ids[1:], losses),
    )


def _bins(cutoffs: Sequence[int], words: Ids, losses: NDArray[np.float64]) -> tuple[BinLoss, ...]:
    number = np.searchsorted(cutoffs, words, side="right")
    tokens = np.bincount(number, minlength=len(cutoffs) + 1).tolist()
    totals = np.bincount(number, losses, minlength=len(cutoffs) + 1).tolist()
    return tuple(
        BinLoss(first=first, tokens=count, loss=total / count if count else None)
        for first, count, total in zip((0, *cutoffs), tokens, totals, strict=True)
    )
