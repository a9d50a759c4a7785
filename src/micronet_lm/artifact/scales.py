"""Scales: what an integer is multiplied with to give a value, exactly in fp32."""

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.bits import largest

Floats = NDArray[np.float32]

SMALLEST, LARGEST = 2.0**-126, 2.0**100
"""Bounds of a scale that is not 0: its reciprocal and its multiples are finite."""


def scales_of(ranges: Floats, bits: int) -> Floats:
    """Range / M, rounded up to a float32 whose last `bits` mantissa bits are 0; 0 for range 0."""
    exact = ranges.astype(np.float64) / largest(bits)
    exact = np.where(ranges > 0, np.maximum(exact, SMALLEST), 0.0)
    near = exact.astype(np.float32)
    above = np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)
    last = np.uint32(2**bits - 1)
    return ((above.view(np.uint32) + last) & ~last).view(np.float32)


def quantized(values: Floats, scales: Floats, bits: int) -> NDArray[np.int16]:
    """The integers nearest to values in units of their scales; `scales` broadcasts against them."""
    inverse = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales > 0)
    limit = largest(bits)
    return np.clip(np.rint(values * inverse), -limit, limit).astype(np.int16)


def are_scales(scales: Floats, bits: int) -> bool:
    """Whether all numbers can be scales of integers with so many bits."""
    last = np.uint32(2**bits - 1)
    in_bounds = (scales >= SMALLEST) & (scales <= LARGEST)
    exact = scales.view(np.uint32) & last == 0
    return bool(np.all((scales.view(np.uint32) == 0) | (in_bounds & exact)))
