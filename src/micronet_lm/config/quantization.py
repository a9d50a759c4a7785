"""The recipe's section `quantize`: widths, places, and how the scales are found."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from micronet_lm.config.places import PLACEMENTS, Place
from micronet_lm.config.section import Section

FULL = 32
"""Bits of what is left as it is."""

Width = Annotated[int, Field(ge=2, le=FULL)]


class QuantizeConfig(Section):
    """Integers instead of floats, by quantization-aware training (section 4.3)."""

    bits: int = Field(default=9, ge=2, le=16)
    """Width of weights and activations (w), where nothing else is said below."""

    steps: int = Field(default=1, ge=0)
    """Steps of quantization-aware training; the paper takes 1, and 0 only calibrates."""

    learning_rate: float = Field(default=1e-4, gt=0.0)
    """Largest learning rate of these steps; it falls along half a cosine."""

    places: Literal["code", "text", "none"] | tuple[Place, ...] = "code"
    """Which activations: those of the authors' `code`, of the paper's `text`, `none`, or a list
    of places."""

    activation_bits: Width | None = None
    """Width of activations; here and below, `bits` when left out, and 32 is left in fp32."""

    layer_bits: Width | None = None
    """Width of the matrices of attention and of the feed-forward part."""

    projection_bits: Width | None = None
    """Width of the projections between embeddings and the model."""

    table_bits: Width | None = None
    """Width of the words' embeddings, which are also the softmax's rows."""

    tail_bits: Width | None = None
    """Width of the first bin's entries for the other bins."""

    position_bits: Width | None = FULL
    """Width of the position tables; the authors' code leaves them in fp32."""

    bias_bits: Width | None = None
    """Width of all biases but LayerNorm's, which stay in fp32 with its gains."""

    scales: Literal["row", "matrix"] = "row"
    """One scale per output of the layers' matrices and projections, or one per matrix."""

    table_scales: Literal["row", "matrix"] = "matrix"
    """The same for tables and tails; a scale takes as much as several integers of a narrow row."""

    learned: bool = False
    """Whether scales are learned with the weights (LSQ), instead of following ranges."""

    learned_rate: float = Field(default=10.0, gt=0.0)
    """How many times faster than a weight the logarithm of a learned scale moves."""

    decay: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Of the moving average of activations' ranges."""

    calibration_tokens: int = Field(default=16_384, ge=2)
    """Tokens of the training split that ranges are taken from before the first step."""

    @field_validator("places", mode="before")
    @classmethod
    def _known_places(cls, value: object) -> object:
        if value is None:
            return "none"
        if isinstance(value, str) and value in PLACEMENTS:
            return value
        names = tuple(value) if isinstance(value, list | tuple) else (value,)
        for name in names:
            if not (isinstance(name, str) and name in set(Place)):
                raise ValueError(
                    f"there is no place '{name}'; give {', '.join(PLACEMENTS)}, or a list of "
                    f"{', '.join(Place)}"
                )
        return names

    @field_validator(
        *("activation_bits", "layer_bits", "projection_bits", "table_bits", "tail_bits"),
        *("position_bits", "bias_bits"),
    )
    @classmethod
    def _there_are_integers_of_that_width(cls, value: int | None) -> int | None:
        if value is not None and 16 < value < FULL:
            raise ValueError(f"{value} bits are not supported: give 2 to 16, or {FULL} for fp32")
        return value

    @model_validator(mode="after")
    def _each_place_once(self) -> Self:
        if isinstance(self.places, tuple) and len(set(self.places)) < len(self.places):
            raise ValueError(f"places {', '.join(self.places)} name one of them twice")
        return self

    @property
    def chosen_places(self) -> frozenset[Place]:
        """The places whose activations become integers."""
        if self.width_of_activations == FULL:
            return frozenset()
        if isinstance(self.places, tuple):
            return frozenset(self.places)
        return PLACEMENTS[self.places]

    @property
    def width_of_activations(self) -> int:
        """Their bits."""
        return self.bits if self.activation_bits is None else self.activation_bits
