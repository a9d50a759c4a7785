"""The checksum of what this package writes: 64 bits that notice damage by accident.

It is no protection against an adversary. docs/format.md defines it; a changed word of the data
changes it for certain. The native engine computes it ten times as fast, where it is built.
"""

import importlib
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_BLOCK = 8192
"""Words of 8 bytes whose sum is one step."""
_ALL = (1 << 64) - 1

SUM_BYTES = 8
"""Length of a checksum as bytes."""


def checksum(data: "bytes | memoryview | NDArray[np.uint8]") -> str:
    """Return the checksum of some bytes, as 16 hexadecimal digits."""
    return f"{_fastest()(np.frombuffer(data, np.uint8)):016x}"


def checksum_bytes(data: "bytes | memoryview") -> bytes:
    """Return the checksum of some bytes as it is written behind them: little-endian."""
    return int(checksum(data), 16).to_bytes(SUM_BYTES, "little")


def checksum_in_numpy(data: NDArray[np.uint8]) -> int:
    """Compute the checksum without the native engine."""
    whole = len(data) // 8
    words = data[: whole * 8].view("<u8")
    if rest := len(data) - whole * 8:
        last = int.from_bytes(data[-rest:].tobytes(), "little")
        words = np.append(words, np.uint64(last))
    places = np.arange(1, _BLOCK + 1, dtype=np.uint64) * _STEP
    result = _mix(len(data))
    for begin in range(0, len(words), _BLOCK):
        x = words[begin : begin + _BLOCK] + places[: len(words) - begin]
        x ^= x >> np.uint64(32)
        x *= _FACTOR
        x ^= x >> np.uint64(29)
        result = _mix(result + int(x.sum()))
    return result


def _mix(x: int) -> int:
    x &= _ALL
    x = (x ^ x >> 32) * int(_FACTOR) & _ALL
    x = (x ^ x >> 29) * int(_STEP) & _ALL
    return x ^ x >> 32


@cache
def _fastest() -> Callable[[NDArray[np.uint8]], int]:
    """Return the native engine's function if it is built: a leaf that imports nothing of ours."""
    try:
        native = importlib.import_module("micronet_lm.runtime._native")
        found: Callable[[NDArray[np.uint8]], int] = native.checksum
    except (ImportError, AttributeError):
        return checksum_in_numpy
    return found
