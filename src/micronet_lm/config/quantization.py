"""The recipe's section `quantize`: widths, places and scales."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from micronet_lm.config.places import PLACEMENTS, Place
from micronet_lm.config.section import Section

FULL = 32
"""Bits of tensors that are not quantized."""

Width = Annotated[int, Field(ge=2, le=FULL)]


class QuantizeConfig(Section):
    """Integers instead of floats, by quantization-aware training (section 4.3)."""

    bits: int = Field(default=9, ge=2, le=16)
    """Width of weights and activations (w), unless a key below gives another."""

    steps: int = Field(default=1, ge=0)
    """Steps of quantization-aware training; the paper uses 1, and 0 only calibrates."""

    learning_rate: float = Field(default=1e-4, gt=0.0)
    """Largest learning rate of these steps; it falls along half a cosine."""

    batch: int | None = Field(default=None, ge=1)
    """Sequences per step; that of section `train` if left out."""

    hebbian: bool = False
    """Whether the Hebbian update, if the model has one, also acts in these steps; the authors'
    configurations switch it off."""

    places: Literal["code", "text", "none"] | tuple[Place, ...] = "code"
    """Activations to quantize: those of the authors' `code`, of the paper's `text`, `none`, or a
    list of places."""

    activation_bits: Width | None = None
    """Width of activations; here and below, the default is `bits`, and 32 keeps fp32."""

    layer_bits: Width | None = None
    """Width of the matrices of attention and of the feed-forward part."""

    projection_bits: Width | None = None
    """Width of the projections between embeddings and the model."""

    table_bits: Width | None = None
    """Width of the embedding tables, which are also the softmax's rows."""

    tail_bits: Width | None = None
    """Width of the first bin's entries for the other bins."""

    position_bits: Width | None = FULL
    """Width of the position tables; the authors' code leaves them in fp32."""

    bias_bits: Width | None = None
    """Width of all biases but LayerNorm's, which stay in fp32 with its gains."""

    scales: Literal["row", "matrix"] = "row"
    """One scale per output of the layers' matrices and projections, or one per matrix."""

    table_scales: Literal["row", "matrix"] = "matrix"
    """The same for tables and tails; in a narrow row, a scale costs as much as several integers."""

    learned: bool = False
    """Whether scales are learned with the weights (LSQ) instead of computed from ranges."""

    learned_rate: float = Field(default=10.0, gt=0.0)
    """Learning rate of the logarithm of a learned scale, as a multiple of a weight's."""

    decay: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Decay of the moving average of activations' ranges."""

    calibration_tokens: int = Field(default=16_384, ge=2)
    """Tokens of the training split that determine the ranges before the first step."""

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
                    f"there is no place '{name}': choose {', '.join(PLACEMENTS)}, or a list of "
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
            raise ValueError(f"bits must be 2 to 16, or {FULL} for fp32, got {value}")
        return value

    @model_validator(mode="after")
    def _each_place_once(self) -> Self:
        if isinstance(self.places, tuple) and len(set(self.places)) < len(self.places):
            raise ValueError(f"places must be distinct, got {', '.join(self.places)}")
        return self

    @property
    def chosen_places(self) -> frozenset[Place]:
        """The places whose activations are quantized."""
        if self.width_of_activations == FULL:
            return frozenset()
        if isinstance(self.places, tuple):
            return frozenset(self.places)
        return PLACEMENTS[self.places]

    @property
    def width_of_activations(self) -> int:
        """Bits of quantized activations."""
        return self.bits if self.activation_bits is None else self.activation_bits
