"""The section of a recipe for a table of n-grams that is mixed into a packed model."""

from pydantic import Field

from micronet_lm.config.section import Section


class NgramsConfig(Section):
    """A table of the training split's n-grams, so that a model is good from the first word on."""

    order: int = Field(default=4, ge=2, le=8)
    """Words of the longest n-grams."""

    min_count: int = Field(default=2, ge=1)
    """How often an n-gram must occur in the training split."""

    budget: int | None = Field(default=None, ge=1)
    """Most bytes of the table; the n-grams that are worth least are left out. No limit if left out.
    """

    bits: int = Field(default=4, ge=2, le=8)
    """Bits of a quantized value."""

    tokens: int = Field(default=30, ge=2)
    """Length of the texts, cut out of the validation split, on which the table's share is fitted:
    the shorter they are, the larger it is."""
