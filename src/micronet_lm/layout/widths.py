"""The width and the number of scales of each tensor of a quantized model.

Everything that writes, reads or counts integers uses these functions.
"""

from dataclasses import dataclass

from micronet_lm.config import FULL, ModelConfig, QuantizeConfig
from micronet_lm.layout.slots import EMBEDDINGS, Role, Slot, slots


@dataclass(frozen=True, kw_only=True)
class Width:
    """Bits and scales of a tensor of integers."""

    bits: int
    """Bits per integer."""
    scales: int
    """Number of scales: one per row (first index) of the tensor in a checkpoint, or one."""


def bits_of(config: QuantizeConfig, slot: Slot) -> int:
    """Return the bits of a matrix's weights; 32 if they stay floats."""
    own = {
        Role.LAYER: config.layer_bits,
        Role.PROJECTION: config.projection_bits,
        Role.TABLE: config.table_bits,
        Role.TAIL: config.tail_bits,
        Role.POSITIONS: config.position_bits,
    }[slot.role]
    return config.bits if own is None else own


def bias_bits_of(config: QuantizeConfig) -> int:
    """Return the bits of a bias; 32 if it stays floats."""
    return config.bits if config.bias_bits is None else config.bias_bits


def scale_count(config: QuantizeConfig, slot: Slot) -> int:
    """Return the number of scales of a matrix's integers; a bias always has one."""
    if slot.role is Role.POSITIONS:
        return 1
    rule = config.table_scales if slot.role in EMBEDDINGS else config.scales
    return slot.outputs if rule == "row" else 1


def widths(config: QuantizeConfig, shape: ModelConfig) -> dict[str, Width]:
    """Return the width of every quantized tensor, by name."""
    found = {}
    for slot in slots(shape):
        bits, bias_bits = bits_of(config, slot), bias_bits_of(config)
        if bits < FULL:
            found[slot.name] = Width(bits=bits, scales=scale_count(config, slot))
        if slot.bias and bias_bits < FULL:
            found[slot.bias] = Width(bits=bias_bits, scales=1)
    return found
