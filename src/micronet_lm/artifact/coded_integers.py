"""Integers of a tensor as prefix codes: all elements, zeros included, in blocks of 1,024."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.bits import Bytes, largest
from micronet_lm.artifact.metadata import refuse
from micronet_lm.artifact.prefix_codes import (
    BLOCK,
    CodedBlocks,
    check_lengths,
    code_lengths,
    encode_blocks,
    pack_lengths,
    unpack_lengths,
)

WIDEST = 10
"""Most bits of integers that are coded: of wider ones each value is rare."""


def coded_integers(integers: NDArray[Any], bits: int) -> Bytes | None:
    """Return the coded integers; None where they cannot be coded."""
    if bits > WIDEST:
        return None
    symbols = integers.reshape(-1).astype(np.int64) + largest(bits)
    counts = np.bincount(symbols, minlength=2 * largest(bits) + 1)
    if np.count_nonzero(counts) < 2:
        return None
    blocks = encode_blocks(symbols, code_lengths(counts))
    sizes = blocks.sizes.astype("<u2").view(np.uint8)
    return np.concatenate([pack_lengths(blocks.lengths), sizes, blocks.data])


def read_coded(name: str, part: Bytes, count: int, bits: int) -> CodedBlocks:
    """Return the blocks of a coded tensor; `decode_blocks` reads their symbols."""
    what = f"its tensor {name}.coded"
    symbols, blocks = 2 * largest(bits) + 1, -(-count // BLOCK)
    head = (symbols + 1) // 2
    if bits > WIDEST or len(part) < head + 2 * blocks:
        _too_short(what, len(part))
    lengths = unpack_lengths(part[:head], symbols, what)
    check_lengths(lengths, what)
    sizes = np.ascontiguousarray(part[head : head + 2 * blocks]).view("<u2")
    data = part[head + 2 * blocks :]
    if int(sizes.sum(dtype=np.int64)) != len(data):
        _too_short(what, len(part))
    return CodedBlocks(lengths=lengths, sizes=sizes, data=data, count=count)


def integers_of(symbols: NDArray[np.int16], bits: int) -> NDArray[np.int16]:
    """Return the integers of decoded symbols."""
    return (symbols - np.int16(largest(bits))).astype(np.int16)


def _too_short(what: str, size: int) -> NoReturn:
    refuse(f"{what} of {size} bytes does not hold what it says")
