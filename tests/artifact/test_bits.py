"""Bits on disk: literal bytes, and every width there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from micronet_lm.artifact.bits import (
    largest,
    loose_bits,
    pack_integers,
    pack_mask,
    packed_size,
    unpack_integers,
    unpack_mask,
)


def test_literal_bytes() -> None:
    """The lowest bit of the lowest byte first, in two's complement."""
    assert pack_integers(np.array([1, -1, 0, 1]), 2).tobytes() == bytes([0b01_00_11_01])
    assert pack_integers(np.array([7, -7]), 4).tobytes() == bytes([0x97])
    assert pack_integers(np.array([5, -2, 255]), 9).tobytes() == bytes(
        [0b00000101, 0b11111100, 0b11111111, 0b00000011]
    )
    assert pack_integers(np.array([-32767, 258]), 16).tobytes() == bytes([1, 0x80, 2, 1])
    assert pack_mask(np.array([1, 0, 0, 1, 0, 0, 0, 0, 1], bool)).tobytes() == bytes([9, 1])


@given(st.integers(2, 16), st.data())
def test_there_and_back(bits: int, data: st.DataObject) -> None:
    limit = largest(bits)
    integers = data.draw(st.lists(st.integers(-limit - 1, limit), max_size=40))
    packed = pack_integers(np.array(integers, np.int16), bits)
    assert packed.size == packed_size(len(integers), bits)
    assert unpack_integers(packed, len(integers), bits).tolist() == integers
    # An independent reading of the page: one large number, the first element lowest.
    whole = int.from_bytes(packed.tobytes(), "little")
    for place, integer in enumerate(integers):
        assert (whole >> (place * bits)) % 2**bits == integer % 2**bits
    assert whole >> (len(integers) * bits) == 0
    assert not len(packed) or not loose_bits(packed, len(integers) * bits)


@given(st.lists(st.booleans(), max_size=40))
def test_masks_there_and_back(mask: list[bool]) -> None:
    packed = pack_mask(np.array(mask, bool))
    assert packed.size == packed_size(len(mask), 1)
    assert unpack_mask(packed, len(mask)).tolist() == mask


@pytest.mark.parametrize(("used", "byte", "loose"), [(3, 7, False), (3, 8, True), (8, 255, False)])
def test_bits_behind_the_last_element(used: int, byte: int, loose: bool) -> None:
    assert loose_bits(np.array([byte], np.uint8), used) is loose
