"""What is counted: a plain description of a model, wherever it comes from.

It is made from a recipe (`recipe_target`), from a run's checkpoint (`run_target`) or from a packed
file, and is all that the counting sees: the shape, the cache, where every matrix has its non-zeros
and at how many bits, and which activations are quantized.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from micronet_lm.config import FULL, ModelConfig, Place
from micronet_lm.layout import Role, slots, vectors


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
    place_bits: int | None = None
    """Of quantized activations, where they differ from `bits`."""

    @property
    def quantized(self) -> bool:
        """Whether any weight or activation has fewer than its full bits."""
        narrow = any(min(m.bits, m.bias_bits) < FULL for m in self.matrices.values())
        return narrow or any(self.activation_bits(place) < FULL for place in self.places)

    @property
    def parameters(self) -> int:
        """Trained values, zeros included, θ and λ left out as the authors do."""
        stored = sum(matrix.size + matrix.bias_size for matrix in self.matrices.values())
        return stored + vectors(self.shape)

    def activation_bits(self, place: Place) -> int:
        """Bits of an activation."""
        if place not in self.places:
            return FULL
        return self.bits if self.place_bits is None else self.place_bits

    def quantizers(self, place: Place) -> int:
        """How many activation quantizers there are at a place, over all layers."""
        return self.shape.quantizers(place) if place in self.places else 0


def usual_bits(
    shape: ModelConfig, matrices: Mapping[str, Matrix], activation_bits: int | None
) -> int:
    """The one width that rules `paper` charge everything at: that of most of the layers' weights.

    Where the layers are floats it is the most frequent one elsewhere, or that of the activations,
    which are none where nothing is quantized. A run and its packed file agree on it, because both
    ask for what they hold and not for what a recipe says.
    """
    layers: Counter[int] = Counter()
    others: Counter[int] = Counter()
    for slot in slots(shape):
        matrix = matrices[slot.name]
        if matrix.bits < FULL:
            (layers if slot.role is Role.LAYER else others)[matrix.bits] += matrix.size
    usual = (layers or others).most_common(1)
    return usual[0][0] if usual else activation_bits or FULL
