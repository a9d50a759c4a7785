"""A packed model in memory: the writer's input and the reader's result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.config import FULL, ModelConfig, Place
from micronet_lm.ngrams import NgramTable
from micronet_lm.spelling import Spelling

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """A weight tensor: floats, or integers with scales."""

    values: NDArray[np.float32] | NDArray[np.int16]
    """float32 values, or int16 integers between −(2^(bits−1) − 1) and 2^(bits−1) − 1."""
    scales: Floats | None = None
    """(1) or (rows), for integers only."""
    bits: int = FULL
    """Bits per integer, 2 to 16; 32 for floats."""
    maskable: bool = True
    """Whether it may be stored sparse; LayerNorm's tensors never are."""

    @property
    def size(self) -> int:
        """Number of elements, zeros included."""
        return self.values.size

    @property
    def nonzeros(self) -> int:
        """Number of elements that are not zero."""
        return int(np.count_nonzero(self.values))

    @property
    def sparse(self) -> bool:
        """Whether it is stored as a mask and non-zeros, because that takes fewer bits."""
        return self.maskable and self.nonzeros * self.bits + self.size < self.size * self.bits

    @property
    def stored_bits(self) -> int:
        """Bits of its integers or floats, its mask and its scales."""
        elements = self.nonzeros * self.bits + self.size if self.sparse else self.size * self.bits
        return elements + (0 if self.scales is None else FULL * self.scales.size)

    def floats(self) -> Floats:
        """Return the values in fp32, exact because a scale's last bits are 0."""
        if self.scales is None:
            return self.values.astype(np.float32, copy=False)
        return self.values.astype(np.float32) * self.broadcast_scales()

    def broadcast_scales(self) -> Floats:
        """Return the scales in a shape that multiplies the integers row by row."""
        if self.scales is None:
            raise ValueError("floats have no scales")
        return self.scales.reshape(-1, *[1] * (self.values.ndim - 1))


@dataclass(frozen=True, kw_only=True)
class CacheParameters:
    """The cache of a packed model."""

    size: int
    """Number of hidden states it holds (n_cache)."""
    theta: float
    """Sharpness of the similarity (θ), a float32."""
    lam: float
    """The cache's share of the prediction (λ), a float32."""
    ramp: int = 0
    """Number of states from which it has its whole share; with only m, it is λ · m / ramp."""
    fade: int = 0
    """Number of tokens in which the vote of a state shrinks to 1/e; 0 if it does not."""

    def share(self, held: int) -> float:
        """Return the share of a cache that holds this many states, at least one."""
        return self.lam * min(1.0, held / self.ramp) if self.ramp else self.lam

    def faded(self, ages: NDArray[np.int64]) -> Floats | None:
        """Return what similarities have lost at these ages in tokens; None if votes do not fade."""
        return (ages * (1.0 / self.fade)).astype(np.float32) if self.fade else None


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedModel:
    """The contents of a packed file."""

    shape: ModelConfig
    """Shape of the model, with its vocabulary size."""
    tensors: Mapping[str, Weights]
    """Weight tensors by the names of docs/format.md."""
    words: Sequence[str]
    """The vocabulary, in the order of the ids."""
    tokenizer: str
    """Name of the tokenizer: `wikitext` or `word`."""
    cache: CacheParameters | None = None
    activation_bits: int | None = None
    """Bits of quantized activations, 2 to 16; None if none are quantized."""
    activations: Mapping[Place, Floats] = field(default_factory=dict)
    """(count, 2) for each quantized place: a range and a scale per quantizer."""
    ngrams: NgramTable | None = None
    """A table of n-grams that the softmax is mixed with."""
    spelling: Spelling | None = None
    """Model of words outside the vocabulary, if any."""
    coded: bool = False
    """Whether a file has words and integers as prefix codes, where these are shorter."""
    card: Mapping[str, Any] = field(default_factory=dict)
    """Description of the model and its origin; plain JSON values."""
