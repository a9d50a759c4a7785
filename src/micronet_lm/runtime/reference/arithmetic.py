"""Quantized numbers and operations on them (docs/arithmetic.md, quantizers and rules).

A model with quantized activations is computed in doubles, and integers stay integers: sums of their
products are exact. A model without them is computed in ordinary fp32.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact import Weights
from micronet_lm.artifact.bits import largest

Array = NDArray[np.floating[Any]]
Floats = NDArray[np.float32]

EPSILON = 1e-5
"""LayerNorm's ε."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """Activations or weights: `numbers · scale`. The scale of floats is 1."""

    numbers: Array
    scale: Array | float = 1.0

    def floats(self) -> Floats:
        """Return the exact values in fp32."""
        if isinstance(self.scale, float) and self.scale == 1.0:
            return self.numbers.astype(np.float32, copy=False)
        return self.numbers.astype(np.float32) * np.asarray(self.scale, np.float32)


@dataclass(frozen=True, kw_only=True)
class Quantizer:
    """The quantizer Q of one place in one layer."""

    scale: np.float32
    bits: int

    def __call__(self, x: Floats) -> Numbers:
        """Round to the nearest multiple of the scale, half to even, within the bits' range."""
        if self.scale == 0:
            return Numbers(numbers=np.zeros_like(x), scale=0.0)
        limit = largest(self.bits)
        integers = np.clip(np.rint(x * (np.float32(1) / self.scale)), -limit, limit)
        return Numbers(numbers=integers, scale=float(self.scale))


def quantize(x: Floats, quantizer: Quantizer | None) -> Numbers:
    """Apply a quantizer, or nothing where a place is not quantized."""
    return Numbers(numbers=x) if quantizer is None else quantizer(x)


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear:
    """A matrix, ready for products with rows of activations."""

    matrix: Array
    """(inputs, outputs): integers or floats in doubles, or values in fp32."""
    scale: Array | float
    """(outputs) or 1: what the matrix's integers are multiplied with."""
    bias: Array | None

    def __call__(self, x: Numbers) -> Floats:
        """Return fl(W x + b) for each row of x (T, inputs)."""
        sums = x.numbers.astype(self.matrix.dtype, copy=False) @ self.matrix
        if sums.dtype == np.float64:
            sums *= self.scale * np.asarray(x.scale)
        if self.bias is not None:
            sums += self.bias
        return sums.astype(np.float32, copy=False)


def linear(weights: Weights, bias: Weights | None, exact: bool) -> Linear:
    """Prepare a matrix (outputs × inputs) and its bias."""
    kind: type[np.floating[Any]] = np.float64 if exact else np.float32
    scale: Array | float = 1.0
    if exact and weights.scales is not None:
        matrix, scale = weights.values.astype(kind), weights.scales.astype(kind)
    else:
        matrix = weights.floats().astype(kind, copy=False)
    own = None if bias is None else bias.floats().astype(kind, copy=False)
    return Linear(matrix=np.ascontiguousarray(matrix.T), scale=scale, bias=own)


def layer_norm(x: Floats, gain: Floats, bias: Floats) -> Floats:
    """Return fl((x − mean) / √(variance + ε) · gain + bias) of each row, computed in doubles."""
    exact = x.astype(np.float64)
    centred = exact - exact.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    normal = centred / np.sqrt(variance + EPSILON)
    return np.asarray(normal * gain + bias, np.float32)


def log_sum_exp(logits: Floats) -> Floats:
    """Return the logarithm of each row's Σ exp."""
    top = logits.max(axis=1, keepdims=True)
    sums = np.exp(logits - top).sum(axis=1, dtype=np.float64)
    return np.asarray(np.log(sums) + top[:, 0], np.float32)
