"""A packed model in memory: what the writer is given and the reader gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.config import FULL, ModelConfig, Place

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """A weight tensor: floats, or integers with the scales that make them values."""

    values: NDArray[np.float32] | NDArray[np.int16]
    """float32 values, or int16 integers between −(2^(bits−1) − 1) and 2^(bits−1) − 1."""
    scales: Floats | None = None
    """(1) or (rows), for integers only."""
    bits: int = FULL
    """Of an integer, 2 to 16; 32 for floats."""
    maskable: bool = True
    """Whether its zeros may be left out; those of LayerNorm never are."""

    @property
    def size(self) -> int:
        """Elements, zeros included."""
        return self.values.size

    @property
    def nonzeros(self) -> int:
        """Elements that are not zero."""
        return int(np.count_nonzero(self.values))

    @property
    def sparse(self) -> bool:
        """Whether it is stored as a mask and the non-zeros: where that takes fewer bits."""
        return self.maskable and self.nonzeros * self.bits + self.size < self.size * self.bits

    @property
    def stored_bits(self) -> int:
        """Bits of its integers or floats, of its mask, and of its scales."""
        elements = self.nonzeros * self.bits + self.size if self.sparse else self.size * self.bits
        return elements + (0 if self.scales is None else FULL * self.scales.size)

    def floats(self) -> Floats:
        """The values in fp32; exact, because a scale's last bits are 0."""
        if self.scales is None:
            return self.values.astype(np.float32, copy=False)
        return self.values.astype(np.float32) * self.broadcast_scales()

    def broadcast_scales(self) -> Floats:
        """The scales in a shape that multiplies the integers row by row."""
        if self.scales is None:
            raise ValueError("floats have no scales")
        return self.scales.reshape(-1, *[1] * (self.values.ndim - 1))


@dataclass(frozen=True, kw_only=True)
class CacheParameters:
    """The cache of a packed model."""

    size: int
    """Hidden states that it holds (N)."""
    theta: float
    """Sharpness of the similarity; a float32."""
    lam: float
    """The cache's share of the prediction; a float32."""
    ramp: int = 0
    """States with which it gets all of its share; with fewer it gets as much less."""

    def share(self, held: int) -> float:
        """The share of a cache that holds so many states, at least one."""
        return self.lam * min(1.0, held / self.ramp) if self.ramp else self.lam


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedModel:
    """Everything that a packed file holds."""

    shape: ModelConfig
    """Its vocabulary is known."""
    tensors: Mapping[str, Weights]
    """By the names of docs/format.md."""
    words: Sequence[str]
    """The vocabulary, in the order of the ids."""
    tokenizer: str
    """How text becomes words: `wikitext` or `word`."""
    cache: CacheParameters | None = None
    activation_bits: int | None = None
    """Of the quantized activations, 2 to 16; none where nothing is quantized."""
    activations: Mapping[Place, Floats] = field(default_factory=dict)
    """(count, 2) for each quantized place: a range and a scale a quantizer."""
    card: Mapping[str, Any] = field(default_factory=dict)
    """What the model is and where it comes from; plain JSON values."""
