"""Pack integers of 2 to 16 bits and masks without gaps, lowest bit of the lowest byte first.

Eight integers of b bits fill exactly b bytes, so whole arrays are packed with a few operations: the
j-th integer of every group of eight begins at bit j·b of its group.
"""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int16]

GROUP = 8
"""Number of integers that fill whole bytes, whatever their width."""


def largest(bits: int) -> int:
    """Return the largest integer of this many bits; the smallest is its negative."""
    return int(2 ** (bits - 1) - 1)


def packed_size(count: int, bits: int) -> int:
    """Return the number of bytes that `count` elements take."""
    return (count * bits + 7) // 8


def pack_integers(integers: NDArray[np.integer], bits: int) -> Bytes:
    """Pack integers, in two's complement of `bits` bits."""
    count = integers.size
    groups = -(-count // GROUP)
    padded = np.zeros(groups * GROUP, np.uint32)
    padded[:count] = integers.reshape(-1).astype(np.int32).view(np.uint32) & (2**bits - 1)
    elements = padded.reshape(groups, GROUP)
    packed = np.zeros((groups, bits + 2), np.uint8)  # an integer may extend into the next two bytes
    for place in range(GROUP):
        byte, shift = divmod(place * bits, 8)
        element = elements[:, place] << np.uint32(shift)  # at most 16 + 7 bits: three bytes
        for further in range(3):
            packed[:, byte + further] |= (element >> np.uint32(8 * further)).astype(np.uint8)
    return packed[:, :bits].reshape(-1)[: packed_size(count, bits)]


def unpack_integers(packed: Bytes, count: int, bits: int) -> Integers:
    """Return `count` signed integers of `bits` bits."""
    groups = -(-count // GROUP)
    padded = np.zeros(groups * bits, np.uint8)
    padded[: packed.size] = packed
    rows = np.zeros((groups, bits + 2), np.uint32)
    rows[:, :bits] = padded.reshape(groups, bits)
    integers = np.empty((groups, GROUP), np.int16)
    for place in range(GROUP):
        byte, shift = divmod(place * bits, 8)
        three = rows[:, byte] | rows[:, byte + 1] << np.uint32(8) | rows[:, byte + 2] << 16
        high = (three << np.uint32(32 - bits - shift)).view(
            np.int32
        )  # the sign bit is now the highest
        integers[:, place] = high >> (32 - bits)
    return integers.reshape(-1)[:count]


def pack_mask(mask: NDArray[np.bool_]) -> Bytes:
    """Pack one bit per element."""
    return np.packbits(mask.reshape(-1), bitorder="little")


def unpack_mask(packed: Bytes, count: int) -> NDArray[np.bool_]:
    """Return one boolean per element."""
    return np.unpackbits(packed, count=count, bitorder="little").view(np.bool_)


def loose_bits(packed: Bytes, used: int) -> bool:
    """Return whether a bit after the first `used` bits is set, which the format forbids."""
    rest = used % 8
    return bool(rest) and bool(packed[-1] >> rest)
