"""Scales: the factors that turn integers into values, exactly in fp32."""

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.bits import largest

Floats = NDArray[np.float32]

SMALLEST, LARGEST = 2.0**-126, 2.0**100
"""Bounds of a non-zero scale: its reciprocal and its multiples are finite."""


def scales_of(ranges: Floats, bits: int) -> Floats:
    """Return range / M rounded up to a float32 with the last `bits` bits 0; 0 for range 0."""
    exact = ranges.astype(np.float64) / largest(bits)
    exact = np.where(ranges > 0, np.maximum(exact, SMALLEST), 0.0)
    near = exact.astype(np.float32)
    above = np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)
    last = np.uint32(2**bits - 1)
    return ((above.view(np.uint32) + last) & ~last).view(np.float32)


def quantized(values: Floats, scales: Floats, bits: int) -> NDArray[np.int16]:
    """Return the integers nearest to values / scales; `scales` broadcasts against values."""
    inverse = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales > 0)
    limit = largest(bits)
    return np.clip(np.rint(values * inverse), -limit, limit).astype(np.int16)


def are_scales(scales: Floats, bits: int) -> bool:
    """Return whether all numbers are valid scales of integers of `bits` bits."""
    last = np.uint32(2**bits - 1)
    in_bounds = (scales >= SMALLEST) & (scales <= LARGEST)
    exact = scales.view(np.uint32) & last == 0
    return bool(np.all((scales.view(np.uint32) == 0) | (in_bounds & exact)))
