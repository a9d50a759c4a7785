"""The section of a recipe for words outside the vocabulary."""

from pydantic import Field

from micronet_lm.config.section import Section


class SpellingConfig(Section):
    """A model of how words are spelled, estimated from the training split's rare words when the
    model is packed; with it every word has a probability.
    """

    order: int = Field(default=5, ge=2, le=8)
    """Bytes that the model looks at together: n − 1 before the one that it predicts."""

    budget: float = Field(default=0.05, gt=0.0, le=0.05)
    """Largest share of the packed file that it may take."""

    max_count: int = Field(default=5, ge=1)
    """It learns from words that occur at most so often in the training split, and from all words
    that the vocabulary leaves out; if there are none, from the whole vocabulary."""
