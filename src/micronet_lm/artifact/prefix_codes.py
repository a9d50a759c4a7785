"""Prefix codes of at most 12 bits: chosen for counts, written, and read many blocks at a time.

A code is told by the lengths of its words (0: the symbol does not occur). Symbols of increasing
length, and of one length in increasing order, have consecutive codes; a code is written from its
highest bit on, into bits that are filled from the lowest. docs/format.md has the bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.errors import ArtifactError

LONGEST = 12
"""Bits of the longest code."""
BLOCK = 1024
"""Symbols of a block; every block begins at a byte and can be read by itself."""

Bytes = NDArray[np.uint8]
Lengths = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedBlocks:
    """Symbols in blocks, with the lengths of their code."""

    lengths: Lengths
    """(symbols) bits of each symbol's code; 0 for symbols that do not occur."""
    sizes: NDArray[np.uint16]
    """(blocks) bytes of each block."""
    data: Bytes
    """The blocks one after the other."""
    count: int
    """Number of coded symbols."""


def code_lengths(counts: NDArray[np.integer]) -> Lengths:
    """Return the lengths of the best code of at most 12 bits (package-merge).

    A symbol that is alone has one bit.
    """
    found = np.zeros(len(counts), np.uint8)
    used = np.flatnonzero(counts)
    if len(used) == 1:
        found[used] = 1
        return found
    leaves = sorted((int(counts[symbol]), (int(symbol),)) for symbol in used)
    packages: list[tuple[int, tuple[int, ...]]] = []
    for _ in range(LONGEST):
        merged = sorted([*leaves, *packages], key=lambda item: item[0])
        packages = [
            (a[0] + b[0], a[1] + b[1]) for a, b in zip(merged[::2], merged[1::2], strict=False)
        ]
    for _, symbols in packages[: len(used) - 1]:
        for symbol in symbols:
            found[symbol] += 1
    return found


def check_lengths(lengths: Lengths, what: str, *, alone: bool = False) -> None:
    """Refuse lengths that are not those of a complete code; `alone` allows one of one bit."""
    used = lengths[lengths > 0].astype(np.int64)
    if alone and used.tolist() == [1]:
        return
    if lengths.max(initial=0) > LONGEST or int((1 << (LONGEST - used)).sum()) != 1 << LONGEST:
        raise ArtifactError(f"{what} has code lengths that are not those of a complete code")


def codes_of(lengths: Lengths) -> NDArray[np.uint32]:
    """Return the codes as they are written: their highest bit is the lowest here."""
    codes = np.zeros(len(lengths), np.uint32)
    code, before = 0, 0
    for symbol in np.lexsort((np.arange(len(lengths)), lengths)):
        length = int(lengths[symbol])
        if not length:
            continue
        code <<= length - before
        before = length
        codes[symbol] = int(f"{code:0{length}b}"[::-1], 2)
        code += 1
    return codes


def reading_table(lengths: Lengths) -> NDArray[np.int32]:
    """Return for every 12 next bits the symbol that they begin with, times 16, plus its length.

    −1 where no code begins so, which happens only if a symbol is alone.
    """
    table = np.full(1 << LONGEST, -1, np.int32)
    codes = codes_of(lengths)
    for symbol in np.flatnonzero(lengths).tolist():
        length = int(lengths[symbol])
        table[int(codes[symbol]) :: 1 << length] = symbol << 4 | length
    return table


def write_codes(codes: NDArray[np.uint32], places: NDArray[np.int64], size: int) -> Bytes:
    """Return bytes with codes of at most 12 bits from these bits on; they do not overlap."""
    shifted = codes.astype(np.int64) << (places & 7)
    first = places >> 3
    sums = np.zeros(size + 3)
    for further in range(3):
        own = (shifted >> (8 * further)) & 255
        sums += np.bincount(first + further, weights=own, minlength=size + 3)
    return sums[:size].astype(np.uint8)


def encode_blocks(symbols: NDArray[np.integer], lengths: Lengths) -> CodedBlocks:
    """Code symbols in blocks."""
    bits = lengths[symbols].astype(np.int64)
    blocks = -(-len(symbols) // BLOCK)
    padded = np.zeros(blocks * BLOCK, np.int64)
    padded[: len(symbols)] = bits
    per_block = padded.reshape(blocks, BLOCK)
    sizes = (per_block.sum(1) + 7) // 8
    starts = np.cumsum(sizes) - sizes
    places = (np.cumsum(per_block, 1) - per_block + 8 * starts[:, None]).reshape(-1)
    data = write_codes(codes_of(lengths)[symbols], places[: len(symbols)], int(sizes.sum()))
    return CodedBlocks(
        lengths=lengths, sizes=sizes.astype(np.uint16), data=data, count=len(symbols)
    )


def decode_blocks(parts: Sequence[CodedBlocks]) -> list[NDArray[np.int16]]:
    """Return the symbols of all parts: one symbol of every block at a time."""
    sizes = np.concatenate([part.sizes.astype(np.int64) for part in parts])
    ends = np.cumsum(sizes)
    counts = np.concatenate([_counts(part) for part in parts])
    rows = np.repeat(np.arange(len(parts)), [len(part.sizes) for part in parts])
    tables = np.stack([reading_table(part.lengths) for part in parts]).reshape(-1)
    data = np.concatenate([*(part.data for part in parts), np.zeros(3, np.uint8)]).astype(np.int64)
    windows = data[:-2] | data[1:-1] << 8 | data[2:] << 16  # from each byte on
    order = np.argsort(-counts, kind="stable")  # those that still have symbols are in front
    at, row, left = 8 * (ends - sizes)[order], (rows << LONGEST)[order], counts[order]
    found = np.empty((BLOCK, len(sizes)), np.int16)
    last = len(data) - 3
    for step in range(int(counts.max(initial=0))):
        going = int(np.searchsorted(-left, -step, side="left"))
        bit = at[:going]
        window = windows[np.minimum(bit >> 3, last)]  # damaged blocks may run past the end
        entry = tables[row[:going] + ((window >> (bit & 7)) & ((1 << LONGEST) - 1))]
        found[step, :going] = entry >> 4
        at[:going] = bit + (entry & 15)
    _check_ends(data, at, ends[order])
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    whole = found[:, back].T
    symbols = [row[:count] for row, count in zip(whole, counts.tolist(), strict=True)]
    joined, begin = [], 0
    for part in parts:
        end = begin + len(part.sizes)
        joined.append(np.concatenate([np.empty(0, np.int16), *symbols[begin:end]]))
        begin = end
    return joined


def _counts(part: CodedBlocks) -> NDArray[np.int64]:
    counts = np.full(len(part.sizes), BLOCK, np.int64)
    if part.count % BLOCK:
        counts[-1] = part.count % BLOCK
    return counts


def _check_ends(data: NDArray[Any], at: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    """Refuse blocks that are longer or shorter than their symbols, or have bits set after them."""
    if not np.array_equal((at + 7) >> 3, ends):
        raise ArtifactError("a block of codes does not end where the next one begins")
    rest = at & 7
    if np.any((rest > 0) & (data[np.maximum(ends - 1, 0)] >> rest > 0)):
        raise ArtifactError("a block of codes has bits set after its last one")


def pack_lengths(lengths: Lengths) -> Bytes:
    """Return code lengths as they are stored: 4 bits each, the lower half of a byte first."""
    padded = np.zeros(-(-len(lengths) // 2) * 2, np.uint8)
    padded[: len(lengths)] = lengths
    return np.asarray(padded[::2] | padded[1::2] << np.uint8(4), np.uint8)


def unpack_lengths(packed: Bytes, count: int, what: str) -> Lengths:
    """Return stored code lengths; refuse a half byte after the last one that is not 0."""
    both = np.stack([packed & 15, packed >> 4], 1).reshape(-1)
    if both[count:].any():
        raise ArtifactError(f"{what} has bits set after its last code length")
    return both[:count]
