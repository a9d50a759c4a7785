"""Mutations of packed files that know the format: numbers and parts of the header, bits of data."""

import random

NUMBERS = (
    *(b"0", b"1", b"-0", b"-1", b"01", b"1.0", b"1e0", b"1e999", b"null", b"[]", b"{}", b'""'),
    *(b"2147483647", b"2147483648", b"9007199254740993", b"18446744073709551616", b"16", b"32"),
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with one to three changes."""
    for _ in range(chance.randint(1, 3)):
        if len(data) > 16:
            data = _changed(data, chance)
    return data


def _changed(data: bytes, chance: random.Random) -> bytes:
    length = int.from_bytes(data[:8], "little")
    end = min(len(data), 8 + length)
    match chance.randrange(8):
        case 0:
            return _flipped(data, chance.randrange(len(data)), chance)
        case 1:
            return data[: chance.randrange(len(data))]
        case 2 | 3:
            starts = [i for i in range(9, end) if data[i : i + 1].isdigit()]
            starts = [i for i in starts if not data[i - 1 : i].isdigit()]
            if not starts:
                return data
            at = chance.choice(starts)
            stop = at
            while stop < end and data[stop : stop + 1].isdigit():
                stop += 1
            return _with_header(data, end, at, stop, chance.choice(NUMBERS))
        case 4:
            begin, size = chance.randrange(8, end), chance.randrange(1, 60)
            to = chance.randrange(8, end)
            stop = min(end, to + size) if chance.random() < 0.5 else to
            return _with_header(data, end, to, stop, data[begin : min(end, begin + size)])
        case 5:
            at = chance.randrange(8, end)
            return _with_header(data, end, at, at, bytes([chance.choice(b' ,:[]{}"\\e0-\xff\x00')]))
        case _ if end < len(data):
            return _flipped(data, chance.randrange(end, len(data)), chance)
    return data


def _flipped(data: bytes, place: int, chance: random.Random) -> bytes:
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def _with_header(data: bytes, end: int, at: int, stop: int, new: bytes) -> bytes:
    """Replace part of the header and set its length right, so that the rest is still read."""
    header = data[8:at] + new + data[stop:end]
    return len(header).to_bytes(8, "little") + header + data[end:]
