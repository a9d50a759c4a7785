"""The target of the counting: a plain description of a model.

It is made from a recipe (`recipe_target`), from a run's checkpoint (`run_target`) or from a packed
file, and is all that the counting uses: the shape, the cache, every matrix's non-zeros and bits,
and the quantized activations.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from micronet_lm.config import FULL, ModelConfig, Place
from micronet_lm.layout import Role, slots, vectors


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of a matrix with the same number of non-zeros."""

    count: int
    """Number of these rows."""
    nonzeros: int
    """Number of non-zero weights in each of these rows."""
    biased: bool = False
    """Whether each has a bias that is not zero."""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A matrix with its bias, if any, as far as storage and products depend on it."""

    name: str
    outputs: int
    inputs: int
    rows: tuple[Rows, ...]
    """All rows, grouped."""
    has_bias: bool = False
    bits: int = FULL
    """Bits per weight."""
    bias_bits: int = FULL
    """Bits per bias."""
    scales: int = 0
    """Number of its scales."""

    @property
    def size(self) -> int:
        """Number of weights, zeros included."""
        return self.outputs * self.inputs

    @property
    def nonzeros(self) -> int:
        """Number of weights that are not zero."""
        return sum(rows.count * rows.nonzeros for rows in self.rows)

    @property
    def bias_size(self) -> int:
        """Number of biases, zeros included."""
        return self.outputs if self.has_bias else 0

    @property
    def bias_nonzeros(self) -> int:
        """Number of biases that are not zero."""
        return sum(rows.count for rows in self.rows if rows.biased)


@dataclass(frozen=True, kw_only=True)
class CountedTable:
    """A table of n-grams, as far as storage and operations depend on it."""

    bits: int
    """Bits of all that is stored."""
    entries: int
    """Number of n-grams of two words or more."""
    added: int
    """Most entries that are added for one prediction: the longest group of each order."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A model as the counting uses it."""

    name: str
    """The name the user gave."""
    shape: ModelConfig
    """Shape of the model, with its vocabulary size."""
    matrices: Mapping[str, Matrix]
    """Matrices by name; see `layout`."""
    cache: int = 0
    """Size of the cache; 0 for no cache."""
    fades: bool = False
    """Whether the votes of the cache shrink with age."""
    ngrams: CountedTable | None = None
    """The table of n-grams, if any."""
    shares: tuple[int, ...] = (1,)
    """Number of test tokens in each bin."""
    shares_from: str = "one bin"
    """Source of the shares, for the report."""
    bits: int = FULL
    """Bits of quantized weights and activations; 32 means that none are quantized."""
    places: frozenset[Place] = field(default_factory=frozenset)
    """Places of quantized activations."""
    place_bits: int | None = None
    """Bits of quantized activations, if they differ from `bits`."""

    @property
    def quantized(self) -> bool:
        """Whether any weight or activation has fewer than 32 bits."""
        narrow = any(min(m.bits, m.bias_bits) < FULL for m in self.matrices.values())
        return narrow or any(self.activation_bits(place) < FULL for place in self.places)

    @property
    def parameters(self) -> int:
        """Number of trained values, zeros included, without θ and λ as the authors count."""
        stored = sum(matrix.size + matrix.bias_size for matrix in self.matrices.values())
        return stored + vectors(self.shape)

    def activation_bits(self, place: Place) -> int:
        """Return the bits of a place's activations."""
        if place not in self.places:
            return FULL
        return self.bits if self.place_bits is None else self.place_bits

    def quantizers(self, place: Place) -> int:
        """Return the number of activation quantizers of a place, over all layers."""
        return self.shape.quantizers(place) if place in self.places else 0


def usual_bits(
    shape: ModelConfig, matrices: Mapping[str, Matrix], activation_bits: int | None
) -> int:
    """Return the one width that rules `paper` use for everything: that of most layer weights.

    If the layers are floats it is the most frequent one elsewhere, or that of the activations. A
    run and its packed file give the same width, because both derive it from their tensors and
    not from a recipe.
    """
    layers: Counter[int] = Counter()
    others: Counter[int] = Counter()
    for slot in slots(shape):
        matrix = matrices[slot.name]
        if matrix.bits < FULL:
            (layers if slot.role is Role.LAYER else others)[matrix.bits] += matrix.size
    usual = (layers or others).most_common(1)
    return usual[0][0] if usual else activation_bits or FULL
