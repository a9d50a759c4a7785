"""Probabilities of words from hidden states, without the cache, in ordinary fp32."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact import PackedModel
from micronet_lm.config import Place
from micronet_lm.runtime.reference.arithmetic import (
    Floats,
    Linear,
    Numbers,
    Quantizer,
    linear,
    log_sum_exp,
    quantize,
)

PIECE = 1 << 24
"""Largest number of logits in memory while a bin's sums are computed."""


class AdaptiveSoftmax:
    """The bins' tables, biases and projections."""

    def __init__(
        self, model: PackedModel, quantizers: Mapping[Place, list[Quantizer]], exact: bool
    ) -> None:
        self._bounds = model.shape.bounds
        tensors, bins = model.tensors, len(self._bounds) - 1
        self._tables = [tensors[f"embedding.tables.{n}"].floats() for n in range(bins)]
        self._biases = [tensors[f"softmax.biases.{n}"].floats() for n in range(bins)]
        if bins > 1:  # the first bin has an entry for each other bin
            tails = (tensors["softmax.tail_weight"].floats(), tensors["softmax.tail_bias"].floats())
            self._tables[0] = np.concatenate([self._tables[0], tails[0]])
            self._biases[0] = np.concatenate([self._biases[0], tails[1]])
        projected = iter(quantizers.get(Place.PROJECTED, []))
        self._projections: list[tuple[Linear, Quantizer | None] | None] = []
        for number in range(bins):
            weights = tensors.get(f"softmax.projections.{number}.weight")
            self._projections.append(
                None if weights is None else (linear(weights, None, exact), next(projected, None))
            )

    def log_probability(self, hidden: Numbers, words: NDArray[np.int64]) -> Floats:
        """Return that of one word per hidden state: (T). Tails are computed only where needed."""
        first, entries = self._bounds[1], words.copy()
        for tail, low in enumerate(self._bounds[1:-1]):
            entries[words >= low] = first + tail
        result = self._within(0, hidden, entries)
        for tail, (low, high) in enumerate(pairwise(self._bounds[1:]), start=1):
            (places,) = np.nonzero((words >= low) & (words < high))
            own = Numbers(numbers=hidden.numbers[places], scale=hidden.scale)
            result[places] += self._within(tail, own, words[places] - low)
        return result

    def log_distribution(self, hidden: Numbers) -> Floats:
        """Return those of all words for each hidden state: (T, V)."""
        parts = []
        for number in range(len(self._bounds) - 1):
            states = self._states(number, hidden)
            logits = states @ self._tables[number].T + self._biases[number]
            parts.append(logits - log_sum_exp(logits)[:, None])
        head, first = parts[0], self._bounds[1]
        for tail in range(1, len(parts)):
            parts[tail] += head[:, first + tail - 1, None]
        parts[0] = head[:, :first]
        return np.concatenate(parts, axis=1)

    def _within(self, number: int, hidden: Numbers, words: NDArray[np.int64]) -> Floats:
        """Return the log-probabilities of words within their bin."""
        states = self._states(number, hidden)
        table, bias = self._tables[number], self._biases[number]
        result = np.empty(len(words), np.float32)
        length = max(1, PIECE // len(table))
        for low in range(0, len(words), length):
            own = slice(low, low + length)
            logits = states[own] @ table.T + bias
            asked = np.take_along_axis(logits, words[own, None], axis=1)[:, 0]
            result[own] = asked - log_sum_exp(logits)
        return result

    def _states(self, number: int, hidden: Numbers) -> Floats:
        """Return hidden states in the width of a bin's table."""
        projection = self._projections[number]
        if projection is None:
            return hidden.floats()
        matrix, quantizer = projection
        return quantize(matrix(hidden), quantizer).floats()
