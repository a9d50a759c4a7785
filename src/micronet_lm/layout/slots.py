"""The matrices of a model of a given shape, with their names in checkpoints.

A matrix is (outputs × inputs): one row per output. It may have a bias. The
embedding tables are listed once, as the softmax's rows, with the softmax's biases.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from micronet_lm.config import ModelConfig


class Role(StrEnum):
    """The use of a matrix, which decides whether it is pruned and how it is quantized."""

    LAYER = "layer"
    """The qkv and output matrices of attention, and the two of the feed-forward part."""
    PROJECTION = "projection"
    """A projection between an embedding's width and the model's."""
    TABLE = "table"
    """The words' embeddings, and their softmax rows."""
    TAIL = "tail"
    """The first bin's entries for the other bins."""
    POSITIONS = "positions"
    """Scores of relative positions."""


EMBEDDINGS = frozenset({Role.TABLE, Role.TAIL})
"""Roles that the paper's text calls embedding weights."""


@dataclass(frozen=True, kw_only=True)
class Slot:
    """The position of one matrix in a model: its name, its shape and its role."""

    name: str
    """Name of its weights in a checkpoint."""
    role: Role
    outputs: int
    inputs: int
    bias: str | None = None
    """Name of its bias in a checkpoint."""
    transposed: bool = False
    """Whether the checkpoint holds it as (inputs × outputs)."""


def slots(shape: ModelConfig) -> list[Slot]:
    """Return every matrix of a model of this shape."""
    return [*_input_slots(shape), *_layer_slots(shape), *_softmax_slots(shape)]


def _input_slots(shape: ModelConfig) -> list[Slot]:
    return [
        Slot(
            name=f"embedding.projections.{number}.weight",
            role=Role.PROJECTION,
            outputs=shape.width,
            inputs=width,
        )
        for number, width in enumerate(shape.embedding_widths)
        if width != shape.width
    ]


def _layer_slots(shape: ModelConfig) -> list[Slot]:
    d, h, k, v = shape.width, shape.heads, shape.key_width, shape.value_width
    found = []
    for number in range(shape.layers):
        lead = f"blocks.{number}."
        for name, outputs, inputs, biased in (
            ("attention.qkv", h * (2 * k + v), d, True),
            ("attention.output", d, h * v, False),
            ("inner", shape.ffn_width, d, True),
            ("outer", d, shape.ffn_width, True),
        ):
            found.append(
                Slot(
                    name=f"{lead}{name}.weight",
                    role=Role.LAYER,
                    outputs=outputs,
                    inputs=inputs,
                    bias=f"{lead}{name}.bias" if biased else None,
                )
            )
        found.append(
            Slot(
                name=f"{lead}attention.positions",
                role=Role.POSITIONS,
                outputs=shape.context,
                inputs=k,
                transposed=True,
            )
        )
    return found


def _softmax_slots(shape: ModelConfig) -> list[Slot]:
    found = []
    for number, (low, high) in enumerate(pairwise(shape.bounds)):
        width = shape.embedding_widths[number]
        found.append(
            Slot(
                name=f"embedding.tables.{number}",
                role=Role.TABLE,
                outputs=high - low,
                inputs=width,
                bias=f"softmax.biases.{number}",
            )
        )
        if width != shape.width:
            found.append(
                Slot(
                    name=f"softmax.projections.{number}.weight",
                    role=Role.PROJECTION,
                    outputs=width,
                    inputs=shape.width,
                )
            )
    if shape.cutoffs:
        found.append(
            Slot(
                name="softmax.tail_weight",
                role=Role.TAIL,
                outputs=len(shape.cutoffs),
                inputs=shape.embedding_widths[0],
                bias="softmax.tail_bias",
            )
        )
    return found


def vectors(shape: ModelConfig) -> int:
    """Return the number of values of all LayerNorms: a gain and a bias, twice per layer."""
    return shape.layers * 2 * 2 * shape.width
