"""A second implementation of docs/arithmetic.md: NumPy, one token after another, no torch.

Reads what a checkpoint stores (integers, scales, ranges), so it also tests that these suffice.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.config import ModelConfig, Place

Array = NDArray[Any]
Doubles = NDArray[np.float64]


def fl(x: Array) -> NDArray[np.float32]:
    return x.astype(np.float32)


class Reference:
    """A streaming text: `hidden(word)` gives the hidden state after one more word."""

    def __init__(self, shape: ModelConfig, stored: dict[str, Array], activation_bits: int) -> None:
        self.shape, self.bits = shape, activation_bits
        self.scales = {n: a[:, 1] for n, a in stored.items() if n.startswith("activations.")}
        self.weights: dict[str, Doubles] = {}
        for name, tensor in stored.items():
            if name.endswith(".steps") or name.startswith("activations."):
                continue
            value = tensor.astype(np.float64)
            if f"{name}.steps" in stored:
                scales = stored[f"{name}.steps"].astype(np.float64)
                value = value * scales.reshape(-1, *[1] * (value.ndim - 1))
            self.weights[name] = value
        self.keys: list[list[Array]] = [[] for _ in range(shape.layers)]
        self.values: list[list[Array]] = [[] for _ in range(shape.layers)]

    def hidden(self, word: int) -> NDArray[np.float32]:
        w, shape = self.weights, self.shape
        number = int(np.searchsorted(shape.cutoffs, word, side="right"))
        row = w[f"embedding.tables.{number}"][word - shape.bounds[number]]
        projection = w.get(f"embedding.projections.{number}.weight")
        x = fl(row if projection is None else projection @ row)
        for layer in range(shape.layers):
            x = fl(x + self._attention(x, layer))
            x = fl(x + self._feed_forward(x, layer))
        return self._quantized(Place.HIDDEN, 0, x)

    def projected(self, number: int, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return hidden states in the width of a bin's table."""
        name = f"softmax.projections.{number}.weight"
        if name not in self.weights:
            return hidden
        before = sum(f"softmax.projections.{n}.weight" in self.weights for n in range(number))
        return self._quantized(
            Place.PROJECTED, before, fl(self.weights[name] @ hidden.astype(float))
        )

    def _attention(self, x: NDArray[np.float32], layer: int) -> NDArray[np.float32]:
        w, shape, lead = self.weights, self.shape, f"blocks.{layer}."
        h, k, v = shape.heads, shape.key_width, shape.value_width
        n = self._quantized(Place.ATTENTION_NORM, layer, self._norm(x, f"{lead}attention_norm"))
        qkv = w[f"{lead}attention.qkv.weight"] @ n.astype(float) + w[f"{lead}attention.qkv.bias"]
        qkv32 = self._quantized(Place.QKV, layer, fl(qkv))
        query = qkv32[: h * k].reshape(h, k).astype(float)
        self.keys[layer].append(qkv32[h * k : 2 * h * k].reshape(h, k).astype(float))
        self.values[layer].append(qkv32[2 * h * k :].reshape(h, v).astype(float))
        keys = np.stack(self.keys[layer][-shape.context :])  # (J, h, k)
        values = np.stack(self.values[layer][-shape.context :])
        table = w[f"{lead}attention.positions"][:, shape.context - len(keys) :]  # (k, J)
        scale = float(np.float32(1 / math.sqrt(k)))
        mixed = []
        for head in range(h):
            scores = (keys[:, head] @ query[head] + query[head] @ table) * scale
            exponential = np.exp(scores - scores.max())
            p = fl(exponential / exponential.sum())
            p = self._quantized(Place.ATTENTION_SOFTMAX, layer, p)
            mixed.append(fl(p.astype(float) @ values[:, head]))
        m = self._quantized(Place.ATTENTION_VALUES, layer, np.concatenate(mixed))
        return fl(w[f"{lead}attention.output.weight"] @ m.astype(float))

    def _feed_forward(self, x: NDArray[np.float32], layer: int) -> NDArray[np.float32]:
        w, lead = self.weights, f"blocks.{layer}."
        n = self._quantized(Place.FFN_NORM, layer, self._norm(x, f"{lead}ffn_norm"))
        inner = fl(w[f"{lead}inner.weight"] @ n.astype(float) + w[f"{lead}inner.bias"])
        inner = self._quantized(Place.RELU, layer, np.maximum(inner, np.float32(0)))
        outer = fl(w[f"{lead}outer.weight"] @ inner.astype(float) + w[f"{lead}outer.bias"])
        return self._quantized(Place.FFN_OUTPUT, layer, outer)

    def _norm(self, x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        y = x.astype(float)
        scaled = (y - y.mean()) / np.sqrt(y.var() + 1e-5)
        return fl(scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"])

    def _quantized(self, place: Place, number: int, x: NDArray[np.float32]) -> NDArray[np.float32]:
        scales = self.scales.get(f"activations.{place}")
        if scales is None:
            return x
        scale, limit = np.float32(scales[number]), 2 ** (self.bits - 1) - 1
        if scale == 0:
            return np.zeros_like(x)
        whole = np.clip(np.rint(x * (np.float32(1) / scale)), -limit, limit)
        return fl(whole * scale)
