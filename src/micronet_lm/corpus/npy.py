"""The header of a NumPy file, the same with every version of NumPy.

A fixed header keeps a corpus's hash stable, and lets a file be checked by comparing bytes instead
of parsing possibly damaged ones.
The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

import struct
from typing import Any

import numpy as np


def npy_header(dtype: np.dtype[Any], *shape: int) -> bytes:
    """Return the header of an array, format version 1.0."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    padding = -(10 + len(text) + 1) % 64  # the values begin at a multiple of 64 bytes
    body = text.encode("ascii") + b" " * padding + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body
