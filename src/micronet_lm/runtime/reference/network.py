"""The transformer: word ids to hidden states, for a chunk of T tokens after a state.

Notation: T tokens, D width, h heads, d_k and d_v widths of a head's keys and values, C context.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact import PackedModel, Weights
from micronet_lm.config import ModelConfig, Place
from micronet_lm.runtime.reference.arithmetic import (
    Array,
    Floats,
    Linear,
    Numbers,
    Quantizer,
    layer_norm,
    linear,
    quantize,
)
from micronet_lm.runtime.reference.attention import Positions, attend, positions_of

Ids = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Past:
    """Each layer's last keys and values, at most C − 1; integers where they are quantized."""

    keys: tuple[Floats, ...]
    """(P, h, d_k) per layer, the newest last."""
    values: tuple[Floats, ...]
    """(P, h, d_v) per layer, the newest last."""

    @classmethod
    def empty(cls, shape: ModelConfig) -> "Past":
        """Return the past at the beginning of a text."""
        keys = np.empty((0, shape.heads, shape.key_width), np.float32)
        values = np.empty((0, shape.heads, shape.value_width), np.float32)
        return cls(keys=(keys,) * shape.layers, values=(values,) * shape.layers)


class Network:
    """The embedding and the blocks of a model."""

    def __init__(
        self, model: PackedModel, quantizers: dict[Place, list[Quantizer]], exact: bool
    ) -> None:
        self._shape = model.shape
        self._embedding = Embedding(model, exact)
        layered = {
            p: own for p, own in quantizers.items() if p not in (Place.HIDDEN, Place.PROJECTED)
        }
        self._blocks = [
            Block(model, number, {place: own[number] for place, own in layered.items()}, exact)
            for number in range(model.shape.layers)
        ]
        self._hidden = quantizers[Place.HIDDEN][0] if Place.HIDDEN in quantizers else None

    def __call__(self, ids: Ids, past: Past) -> tuple[Numbers, Past]:
        """Return the hidden states (T, D) of ids (T), and the past for the next chunk."""
        x = self._embedding(ids)
        keys, values = [], []
        for block, key, value in zip(self._blocks, past.keys, past.values, strict=True):
            x, key, value = block(x, key, value)
            keys.append(key)
            values.append(value)
        return quantize(x, self._hidden), Past(keys=tuple(keys), values=tuple(values))


class Embedding:
    """Map from word ids to vectors of the model's width."""

    def __init__(self, model: PackedModel, exact: bool) -> None:
        self._bounds, self._width, self._exact = model.shape.bounds, model.shape.width, exact
        bins = range(len(self._bounds) - 1)
        self._tables = [model.tensors[f"embedding.tables.{n}"] for n in bins]
        self._projections: list[Linear | None] = []
        for number in bins:
            weights = model.tensors.get(f"embedding.projections.{number}.weight")
            self._projections.append(None if weights is None else linear(weights, None, exact))

    def __call__(self, ids: Ids) -> Floats:
        """Return fl(projection · table[word]): (T) → (T, D)."""
        result = np.empty((len(ids), self._width), np.float32)
        for low, high, table, projection in zip(
            self._bounds, self._bounds[1:], self._tables, self._projections, strict=False
        ):
            (places,) = np.nonzero((ids >= low) & (ids < high))
            rows = _rows(table, ids[places] - low)
            floats = projection is None or not self._exact
            rows = Numbers(numbers=rows.floats()) if floats else rows
            result[places] = rows.numbers if projection is None else projection(rows)
        return result


def _rows(table: Weights, rows: Ids) -> Numbers:
    """Return rows of a table; integers stay integers."""
    numbers: Array = table.values[rows].astype(np.float32, copy=False)
    if table.scales is None:
        return Numbers(numbers=numbers)
    scales = table.scales if table.scales.size == 1 else table.scales[rows]
    return Numbers(numbers=numbers, scale=scales[:, None].astype(np.float64))


class Block:
    """LayerNorm, attention, residual; LayerNorm, feed-forward, residual."""

    def __init__(
        self, model: PackedModel, number: int, quantizers: dict[Place, Quantizer], exact: bool
    ) -> None:
        lead = f"blocks.{number}."
        self._shape, self._quantizers = model.shape, quantizers

        def matrix(name: str, bias: bool = True) -> Linear:
            own = model.tensors[f"{lead}{name}.bias"] if bias else None
            return linear(model.tensors[f"{lead}{name}.weight"], own, exact)

        def norm(name: str) -> tuple[Floats, Floats]:
            gain, bias = (model.tensors[f"{lead}{name}.{key}"] for key in ("weight", "bias"))
            return gain.floats(), bias.floats()

        self._attention_norm, self._ffn_norm = norm("attention_norm"), norm("ffn_norm")
        self._qkv, self._output = matrix("attention.qkv"), matrix("attention.output", bias=False)
        self._inner, self._outer = matrix("inner"), matrix("outer")
        self._positions: Positions = positions_of(
            model.tensors[f"{lead}attention.positions"], exact
        )

    def __call__(self, x: Floats, keys: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Map (T, D) to (T, D) with the earlier keys and values; also return the later ones."""
        normal = self._quantize(layer_norm(x, *self._attention_norm), Place.ATTENTION_NORM)
        qkv = self._quantize(self._qkv(normal), Place.QKV)
        mixed, keys, values = self._attend(qkv, keys, values)
        x = x + self._output(self._quantize(mixed, Place.ATTENTION_VALUES))
        normal = self._quantize(layer_norm(x, *self._ffn_norm), Place.FFN_NORM)
        inner = self._quantize(np.maximum(self._inner(normal), np.float32(0)), Place.RELU)
        outer = self._quantize(self._outer(inner), Place.FFN_OUTPUT)
        return x + outer.floats(), keys, values

    def _attend(self, qkv: Numbers, keys: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
        shape, time = self._shape, len(qkv.numbers)
        wide, context = shape.heads * shape.key_width, shape.context
        numbers = qkv.numbers.astype(np.float32, copy=False)
        q, k = (numbers[:, n * wide : (n + 1) * wide] for n in range(2))
        k = k.reshape(time, shape.heads, shape.key_width)
        v = numbers[:, 2 * wide :].reshape(time, shape.heads, shape.value_width)
        keys, values = np.concatenate([keys, k]), np.concatenate([values, v])
        mixed = attend(
            shape,
            Numbers(numbers=q.reshape(time, shape.heads, shape.key_width), scale=qkv.scale),
            Numbers(numbers=keys, scale=qkv.scale),
            Numbers(numbers=values, scale=qkv.scale),
            self._positions,
            self._quantizers.get(Place.ATTENTION_SOFTMAX),
        )
        last = max(0, len(keys) - (context - 1))
        return mixed.reshape(time, -1), keys[last:].copy(), values[last:].copy()

    def _quantize(self, x: Floats, place: Place) -> Numbers:
        return quantize(x, self._quantizers.get(place))
