"""Attention of every token to the last C tokens, itself included, block by block.

A block of R queries sees R + C − 1 keys. Row r of their scores uses only the columns r to
r + C − 1: a diagonal band, which a strided view presents as rows of exactly C.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from micronet_lm.artifact import Weights
from micronet_lm.config import ModelConfig
from micronet_lm.runtime.reference.arithmetic import Array, Floats, Numbers, Quantizer, quantize

BLOCK = 64
"""Queries per block (R)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Positions:
    """The scores of relative positions, (d_k, C)."""

    table: Array
    scale: float
    """Factor of the integers; 1 for a table of floats."""


def positions_of(weights: Weights, exact: bool) -> Positions:
    """Prepare a position table; integers with one scale stay integers."""
    if exact and weights.scales is not None and weights.scales.size == 1:
        return Positions(table=weights.values.astype(np.float64), scale=float(weights.scales[0]))
    kind = np.float64 if exact else np.float32
    return Positions(table=weights.floats().astype(kind), scale=1.0)


def attend(
    shape: ModelConfig,
    queries: Numbers,
    keys: Numbers,
    values: Numbers,
    positions: Positions,
    quantizer: Quantizer | None,
) -> Floats:
    """Return fl(Σ p_j v_j) for T queries (T, h, d_k) and P' + T keys (P' + T, h, d_k).

    P' is C − 1, or less near the beginning of the text.
    """
    time, heads, _ = queries.numbers.shape
    context, kind = shape.context, positions.table.dtype
    scale = float(np.float32(shape.key_width**-0.5))
    missing = context - 1 - (len(keys.numbers) - time)
    padding = ((missing, 0), (0, 0), (0, 0))
    every_key = np.pad(keys.numbers, padding).astype(kind, copy=False)  # (C − 1 + T, h, d_k)
    every_value = np.pad(values.numbers, padding).astype(kind, copy=False)
    mixed = np.empty((time, heads, shape.value_width), np.float32)
    for low, high in _blocks(time):
        query = queries.numbers[low:high].astype(kind, copy=False).transpose(1, 0, 2)  # (h, R, d_k)
        seen = slice(low, high + context - 1)
        products = np.ascontiguousarray(query @ every_key[seen].transpose(1, 2, 0))  # (h, R, S)
        scores = _band(products, context) * (queries.scale * keys.scale)
        scores += (query @ positions.table) * (queries.scale * positions.scale)
        scores *= scale
        for row in range(max(0, missing - low)):  # keys before the text's first token
            scores[:, row : row + 1, : missing - low - row] = -np.inf
        chances = quantize(_softmax(scores), quantizer)  # (h, R, C)
        spread = np.zeros_like(products)
        _band(spread, context)[...] = chances.numbers
        sums = (spread @ every_value[seen].transpose(1, 0, 2)) * (chances.scale * values.scale)
        mixed[low:high] = sums.transpose(1, 0, 2)
    return mixed


def _blocks(time: int) -> Iterator[tuple[int, int]]:
    for low in range(0, time, BLOCK):
        yield low, min(low + BLOCK, time)


def _band(scores: Array, context: int) -> Array:
    """Return the diagonal band of (h, R, R + C − 1) as (h, R, C), without a copy."""
    heads, rows, _ = scores.shape
    head, row, column = scores.strides
    return as_strided(scores, (heads, rows, context), (head, row + column, column))


def _softmax(scores: Array) -> Floats:
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    return np.asarray(powers / powers.sum(axis=2, keepdims=True), np.float32)
