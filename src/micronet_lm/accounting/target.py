"""What is counted: a plain description of a model, wherever it comes from.

It is made from a recipe (`described`), from a run's checkpoint (`runs`) or from a packed file, and
is all that the counting sees: the shape, the cache, where every matrix has its non-zeros and at
how many bits, and which activations are quantized.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from micronet_lm.accounting.layout import vectors
from micronet_lm.config import ModelConfig

FULL = 32
"""Bits of a number that nothing was done to."""


class Place(StrEnum):
    """Activations that can be quantized; all but the last two are there once a layer."""

    ATTENTION_NORM = "attention_norm"
    """Output of the LayerNorm before attention."""
    QKV = "qkv"
    """Queries, keys and values."""
    ATTENTION_SOFTMAX = "attention_softmax"
    """Attention's probabilities."""
    ATTENTION_VALUES = "attention_values"
    """Values mixed by attention."""
    FFN_NORM = "ffn_norm"
    """Output of the LayerNorm before the feed-forward part."""
    RELU = "relu"
    """Inner activations after ReLU."""
    FFN_OUTPUT = "ffn_output"
    """Output of the feed-forward part."""
    HIDDEN = "hidden"
    """The last layer's output, which the softmax and the cache work on; there once."""
    PROJECTED = "projected"
    """Hidden states brought to the width of a bin's table; there once a projection."""


CODE_PLACES = frozenset(Place) - {Place.PROJECTED}
"""Where the authors' code quantizes: seven places a layer and the hidden state."""

TEXT_PLACES = CODE_PLACES - {Place.ATTENTION_NORM, Place.ATTENTION_SOFTMAX, Place.FFN_NORM}
"""Where the paper's text does (section 4.3): not after LayerNorm and softmax."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of a matrix that are alike."""

    count: int
    """How many there are."""
    nonzeros: int
    """Weights of one such row that are not zero."""
    biased: bool = False
    """Whether the row has a bias that is not zero."""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A matrix with its bias, if it has one: what is stored, and what a product with it costs."""

    name: str
    outputs: int
    inputs: int
    rows: tuple[Rows, ...]
    """All rows, the like ones together."""
    has_bias: bool = False
    bits: int = FULL
    """Of a weight."""
    bias_bits: int = FULL
    """Of a bias."""
    scales: int = 0
    """Numbers that turn its integers back into weights."""

    @property
    def size(self) -> int:
        """Weights, zeros included."""
        return self.outputs * self.inputs

    @property
    def nonzeros(self) -> int:
        """Weights that are not zero."""
        return sum(rows.count * rows.nonzeros for rows in self.rows)

    @property
    def bias_size(self) -> int:
        """Biases, zeros included."""
        return self.outputs if self.has_bias else 0

    @property
    def bias_nonzeros(self) -> int:
        """Biases that are not zero."""
        return sum(rows.count for rows in self.rows if rows.biased)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A model as the counting sees it."""

    name: str
    """What the user called it."""
    shape: ModelConfig
    """Its vocabulary is known."""
    matrices: Mapping[str, Matrix]
    """By name; see `layout`."""
    cache: int = 0
    """Activations that the cache holds; 0 is no cache."""
    shares: tuple[int, ...] = (1,)
    """Test tokens in each bin."""
    shares_from: str = "one bin"
    """Where the shares come from, for the report."""
    bits: int = FULL
    """Of weights and activations that are quantized; the full number means that none are."""
    places: frozenset[Place] = field(default_factory=frozenset)
    """Which activations are quantized."""

    @property
    def quantized(self) -> bool:
        """Whether any weight or activation has fewer than its full bits."""
        narrow = any(min(m.bits, m.bias_bits) < FULL for m in self.matrices.values())
        return narrow or (self.bits < FULL and bool(self.places))

    @property
    def parameters(self) -> int:
        """Trained values, zeros included, θ and λ left out as the authors do."""
        stored = sum(matrix.size + matrix.bias_size for matrix in self.matrices.values())
        return stored + vectors(self.shape)

    def activation_bits(self, place: Place) -> int:
        """Bits of an activation."""
        return self.bits if place in self.places else FULL

    def quantizers(self, place: Place) -> int:
        """How many activation quantizers there are at a place, over all layers."""
        if place not in self.places:
            return 0
        if place is Place.HIDDEN:
            return 1
        if place is Place.PROJECTED:
            return sum(width != self.shape.width for width in self.shape.embedding_widths)
        return self.shape.layers
