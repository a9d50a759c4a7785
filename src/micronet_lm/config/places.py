"""The places where a model's activations can be quantized, and named sets of places.

docs/quantization.md shows where in the model each place is, docs/arithmetic.md what is computed
there.
"""

from collections.abc import Mapping
from enum import StrEnum


class Place(StrEnum):
    """Activations that can be quantized; all but the last two exist once per layer."""

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
    """The last layer's output, the input of the softmax and the cache; exists once."""
    PROJECTED = "projected"
    """Hidden states projected to the width of a bin's table; exists once per projection."""


CODE_PLACES = frozenset(Place) - {Place.PROJECTED}
"""Places of the authors' code: seven per layer and the hidden state."""

TEXT_PLACES = CODE_PLACES - {Place.ATTENTION_NORM, Place.ATTENTION_SOFTMAX, Place.FFN_NORM}
"""Places of the paper's text (section 4.3): not after LayerNorm and softmax."""

PLACEMENTS: Mapping[str, frozenset[Place]] = {
    "code": CODE_PLACES,
    "text": TEXT_PLACES,
    "none": frozenset(),
}
"""Named sets of places: those of the authors' code, of the paper's text, none."""
