"""Where a model's activations can be quantized: the one table of places, and its named choices.

docs/quantization.md draws where in the model each place is; docs/arithmetic.md says what is
computed there.
"""

from collections.abc import Mapping
from enum import StrEnum


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

PLACEMENTS: Mapping[str, frozenset[Place]] = {
    "code": CODE_PLACES,
    "text": TEXT_PLACES,
    "none": frozenset(),
}
"""Choices with a name: those of the authors' code, of the paper's text, none."""
