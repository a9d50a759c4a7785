"""The vocabulary as prefix codes: what a word shares with the one before, then byte after byte.

Words of equal counts stand in alphabetical order, so that neighbours often begin alike. A byte's
code depends on the byte before it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.bits import Bytes
from micronet_lm.artifact.metadata import refuse
from micronet_lm.artifact.prefix_codes import (
    LONGEST,
    check_lengths,
    code_lengths,
    codes_of,
    pack_lengths,
    reading_table,
    unpack_lengths,
    write_codes,
)

Array = NDArray[Any]

SHARED = 16
"""A word takes over fewer than this many bytes of the word before it."""
END = 0x0A
_WHAT = "its tensor vocabulary.coded"
_FACTOR = 128
"""Decoded words take at most this many times the bytes of their codes."""


def coded_words(words: Sequence[str]) -> Bytes:
    """Return the coded vocabulary."""
    shared, pairs = _taken_apart(words)
    prefix = code_lengths(np.bincount(shared, minlength=SHARED))
    counts = np.zeros((256, 256), np.int64)
    np.add.at(counts, (pairs[:, 0], pairs[:, 1]), 1)
    lengths = np.zeros((256, 256), np.uint8)
    tables = [np.packbits(counts.any(1), bitorder="little")]
    for before in np.flatnonzero(counts.any(1)).tolist():
        lengths[before] = code_lengths(counts[before])
        after = np.flatnonzero(lengths[before])
        tables.append(np.array([len(after) - 1, *after], np.uint8))
        tables.append(pack_lengths(lengths[before][after]))
    codes = np.stack([codes_of(row) for row in lengths])
    first = pairs[:, 2].astype(bool)  # where a word begins, the code of what it shares comes before
    bits, written = _in_order(
        first,
        (prefix[shared], codes_of(prefix)[shared]),
        (lengths[pairs[:, 0], pairs[:, 1]], codes[pairs[:, 0], pairs[:, 1]]),
    )
    places = np.cumsum(bits) - bits
    data = write_codes(written, places, (int(bits.sum()) + 7) // 8)
    size = sum(len(word.encode()) + 1 for word in words)
    head = np.frombuffer(np.array([size], "<u4").tobytes(), np.uint8)
    return np.concatenate([head, pack_lengths(prefix), *tables, data])


def decode_words(part: Bytes, count: int) -> bytes:
    """Return the words, each followed by a line feed."""
    if len(part) < 4 + SHARED // 2 + 32:
        refuse(f"{_WHAT} of {len(part)} bytes does not hold what it says")
    size = int.from_bytes(part[:4].tobytes(), "little")
    if size > _FACTOR * len(part):
        refuse(f"{_WHAT} of {len(part)} bytes cannot hold {size:,} bytes of words")
    prefix = unpack_lengths(part[4:12], SHARED, _WHAT)
    check_lengths(prefix, _WHAT, alone=True)
    tables, at = _read_tables(part, 12)
    return _Decoder(part[at:].tobytes(), reading_table(prefix).tolist(), tables).words(count, size)


def _read_tables(part: Bytes, at: int) -> tuple[dict[int, list[int]], int]:
    """Return a reading table for each byte that others follow, and where the codes begin."""
    present = np.flatnonzero(np.unpackbits(part[at : at + 32], bitorder="little"))
    at += 32
    tables: dict[int, list[int]] = {}
    for before in present.tolist():
        number = int(part[at]) + 1 if at < len(part) else len(part)
        end = at + 1 + number + (number + 1) // 2
        if end > len(part):
            refuse(f"{_WHAT} of {len(part)} bytes does not hold what it says")
        after = part[at + 1 : at + 1 + number].astype(np.int64)
        if np.any(np.diff(after) <= 0):
            refuse(f"{_WHAT} has bytes after {before} that do not increase")
        own = unpack_lengths(part[at + 1 + number : end], number, _WHAT)
        lengths = np.zeros(256, np.uint8)
        lengths[after] = own
        if not own.all():
            refuse(f"{_WHAT} has a code length of 0 for a byte that it names")
        check_lengths(lengths, _WHAT, alone=True)
        tables[before] = reading_table(lengths).tolist()
        at = end
    return tables, at


class _Decoder:
    """Reads one bit string from its beginning to its end."""

    def __init__(self, data: bytes, prefix: list[int], tables: dict[int, list[int]]) -> None:
        self._bits = int.from_bytes(data, "little")
        self._size = 8 * len(data)
        self._prefix, self._tables = prefix, tables

    def words(self, count: int, size: int) -> bytes:
        """Return so many words, which must be so many bytes and use up all codes."""
        found = bytearray()
        before, word = b"", bytearray()
        window, held, at = 0, 0, 0  # the next bits, how many, and where the ones after them begin
        data = self._bits.to_bytes(self._size // 8, "little")

        def next_symbol(table: list[int]) -> int:
            nonlocal window, held, at
            if held < LONGEST:
                more = data[at : at + 16]
                window |= int.from_bytes(more, "little") << held
                held += 128  # zeros follow the last byte
                at += 16
            entry = table[window & ((1 << LONGEST) - 1)]
            if entry < 0:
                refuse(f"{_WHAT} has bits that are no code")
            window >>= entry & 15
            held -= entry & 15
            return entry >> 4

        nothing = [-1] * (1 << LONGEST)
        for _ in range(count):
            shared = next_symbol(self._prefix)
            if shared > len(before):
                refuse(f"{_WHAT} takes over {shared} bytes of a word that has {len(before)}")
            word = bytearray(before[:shared])
            last = word[-1] if word else END
            while (byte := next_symbol(self._tables.get(last, nothing))) != END:
                word.append(byte)
                last = byte
                if len(found) + len(word) >= size:
                    refuse(f"{_WHAT} has more than its {size:,} bytes of words")
            before = bytes(word)
            found += before
            found.append(END)
        used = 8 * at - held
        if len(found) != size or (used + 7) // 8 != len(data) or window:
            refuse(f"{_WHAT} does not end with its last word")
        return bytes(found)


def _taken_apart(words: Sequence[str]) -> tuple[Array, Array]:
    """Return how much each word shares, and (byte before, byte, whether a word begins here)."""
    shared, pairs, before = [], [], b""
    for word in words:
        data = word.encode()
        same = 0
        for a, b in zip(data[: SHARED - 1], before, strict=False):
            if a != b:
                break
            same += 1
        last = data[same - 1] if same else END
        first = 1
        for byte in (*data[same:], END):
            pairs.append((last, byte, first))
            last, first = byte, 0
        shared.append(same)
        before = data
    return np.array(shared, np.int64), np.array(pairs, np.int64).reshape(-1, 3)


def _in_order(
    first: Array, prefix: tuple[Array, Array], letters: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return bits and codes of everything in the order of the file."""
    places = np.arange(len(first)) + np.cumsum(first)
    total = len(first) + int(first.sum())
    bits, codes = np.zeros(total, np.int64), np.zeros(total, np.uint32)
    bits[places], codes[places] = letters
    bits[places[first] - 1], codes[places[first] - 1] = prefix
    return bits, codes
