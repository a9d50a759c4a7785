"""The bytes of a personal memory: literal, and hostile ones refused in one sentence."""

import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from tests.support.mutation import mutated

from micronet_lm.checksum import checksum
from micronet_lm.errors import PersonalError
from micronet_lm.runtime.personal_file import Frame, Memories, decoded, encoded

FRAME = Frame(model=0x1122334455667788, width=2, vocabulary=5, states=3, knows="the".__eq__)
MEMORIES = Memories(
    words=("é", "knob"),
    counts=(3, 258),
    following=np.array([4, 6], np.int32),
    states=np.array([[1.0, -2.0], [0.5, 0.0]], np.float16),
)
BODY = (
    b"MNPERSN1"
    + bytes.fromhex("8877665544332211")
    + bytes.fromhex("05000000 02000000 02000000 02000000")
    + bytes.fromhex("03000000 0200 c3a9")
    + bytes.fromhex("02010000 0400")
    + b"knob"
    + bytes.fromhex("04000000 06000000")
    + bytes.fromhex("003c 00c0 0038 0000")
)


def whole(body: bytes) -> bytes:
    return body + int(checksum(body), 16).to_bytes(8, "little")


def test_literal_bytes() -> None:
    assert encoded(MEMORIES, FRAME) == whole(BODY)
    back = decoded(whole(BODY), FRAME)
    assert (back.words, back.counts) == (MEMORIES.words, MEMORIES.counts)
    np.testing.assert_array_equal(back.following, MEMORIES.following)
    np.testing.assert_array_equal(back.states, MEMORIES.states)
    assert len(whole(BODY)) <= FRAME.most_bytes


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not a personal memory"),
        (b"X" + BODY[1:], "not a personal memory"),
        (BODY[:8] + b"\0" + BODY[9:], "belongs to another model"),
        (BODY[:16] + b"\x06" + BODY[17:], "belongs to another model"),
        (BODY[:24] + struct.pack("<I", 5000) + BODY[28:], "more than a memory can have"),
        (BODY[:28] + struct.pack("<I", 4) + BODY[32:], "more than a memory can have"),
        (
            BODY[:24] + struct.pack("<I", 3) + BODY[28:],
            "within its words|without letters|not UTF-8",
        ),
        (BODY + b"\0", "do not fit"),
        (BODY[:-1], "do not fit"),
        (BODY.replace(b"\xc3\xa9", b"\xc3\xc3"), "not UTF-8"),
        (BODY.replace(b"knob", b"kn\nb"), "line feed"),
        (BODY.replace(b"\x02\x01\0\0\x04", b"\0\0\0\0\x04"), "without a count"),
        (BODY.replace(b"\x04\0\0\0\x06", b"\x07\0\0\0\x06"), "does not have"),
        (BODY.replace(b"\x04\0\0\0\x06", b"\xff\xff\xff\xff\x06"), "does not have"),
        (BODY.replace(b"\x00\x3c", b"\x00\x7c"), "not finite"),
    ],
    ids=range(15),
)
def test_what_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(PersonalError, match=why) as caught:
        decoded(whole(body), FRAME)
    assert "\n" not in str(caught.value)


def test_words_of_the_vocabulary_and_words_twice() -> None:
    for words in (("the", "knob"), ("knob", "knob")):
        with pytest.raises(PersonalError, match="twice, or one of the vocabulary"):
            decoded(encoded(replace(MEMORIES, words=words), FRAME), FRAME)


def test_every_changed_byte_is_noticed() -> None:
    data = whole(BODY)
    for place in range(len(data)):
        with pytest.raises(PersonalError):
            decoded(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], FRAME)
    for size in range(len(data)):
        with pytest.raises(PersonalError):
            decoded(data[:size], FRAME)


def test_mutations_with_a_right_checksum_are_read_or_refused() -> None:
    chance = random.Random(1)  # noqa: S311
    for _ in range(2000):
        try:
            found = decoded(whole(mutated(BODY, chance)), FRAME)
        except PersonalError:
            continue
        assert len(encoded(found, FRAME)) <= FRAME.most_bytes
