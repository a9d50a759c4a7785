"""The bytes of a personal memory (docs/personal.md has the format), read strictly."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from micronet_lm.checksum import SUM_BYTES, checksum_bytes
from micronet_lm.errors import PersonalError

MAGIC = b"MNPERSN1"
_HEADER = struct.Struct("<8sQIIII")
_WORD = struct.Struct("<IH")
MOST_WORDS = 4096
"""Words outside the vocabulary that are kept."""
LONGEST_WORD = 128
"""Bytes of a word, at most; longer ones are not kept."""
MOST_TIMES = (1 << 32) - 1
"""Largest count of a word."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What a memory must fit: facts of its model."""

    model: int
    """Checksum of the packed file."""
    width: int
    vocabulary: int
    states: int
    """Size of the cache: as many states are kept at most."""
    knows: Callable[[str], bool]
    """Return whether the vocabulary has a word."""

    @property
    def most_bytes(self) -> int:
        """Size of the largest file."""
        words = MOST_WORDS * (_WORD.size + LONGEST_WORD)
        return _HEADER.size + words + self.states * (4 + 2 * self.width) + SUM_BYTES


@dataclass(frozen=True, kw_only=True, eq=False)
class Memories:
    """What is remembered of a person's texts; never changed in place."""

    words: tuple[str, ...]
    """Words outside the vocabulary; the one that was read last is last."""
    counts: tuple[int, ...]
    following: NDArray[np.int32]
    """(M) the word after each state: an id, or V + n for word n."""
    states: NDArray[np.float16]
    """(M, D) hidden states, newest last."""

    @classmethod
    def none(cls, width: int) -> "Memories":
        """Return an empty memory."""
        return cls(
            words=(),
            counts=(),
            following=np.empty(0, np.int32),
            states=np.empty((0, width), np.float16),
        )


def encoded(memories: Memories, frame: Frame) -> bytes:
    """Return the bytes of a file."""
    head = _HEADER.pack(
        MAGIC,
        frame.model,
        frame.vocabulary,
        frame.width,
        len(memories.words),
        len(memories.following),
    )
    parts = [head]
    for word, count in zip(memories.words, memories.counts, strict=True):
        text = word.encode()
        parts += [_WORD.pack(count, len(text)), text]
    parts.append(memories.following.astype("<i4").tobytes())
    parts.append(memories.states.astype("<f2").tobytes())
    body = b"".join(parts)
    return body + checksum_bytes(body)


def whole_body(data: bytes) -> bytes:
    """Return a file without its checksum; refuse a file that does not have the right one."""
    if len(data) < _HEADER.size + SUM_BYTES or data[:8] != MAGIC:
        _refuse("is not a personal memory of this version")
    body = data[:-SUM_BYTES]
    if checksum_bytes(body) != data[-SUM_BYTES:]:
        _refuse("is truncated or damaged: its checksum is wrong")
    return body


def decoded(data: bytes, frame: Frame) -> Memories:
    """Read what `encoded` gave; refuse anything else."""
    body = whole_body(data)
    _, model, vocabulary, width, words, states = _HEADER.unpack_from(data)
    if (model, vocabulary, width) != (frame.model, frame.vocabulary, frame.width):
        raise PersonalError(
            "belongs to another model: open it with that one, and carry its words over with "
            "'export' and 'merge'"
        )
    if words > MOST_WORDS or states > frame.states:
        _refuse(f"has {words} words and {states} states, more than a memory can have")
    found, at = _words(body, words, frame)
    if len(body) - at != states * (4 + 2 * width):
        _refuse(f"has {len(data)} bytes, which do not fit what it claims to hold")
    following = np.frombuffer(body, "<i4", states, at).astype(np.int32)
    numbers = np.frombuffer(body, "<f2", states * width, at + 4 * states).astype(np.float16)
    if states and not 0 <= following.min() <= following.max() < vocabulary + words:
        _refuse("refers to a word that it does not have")
    if not np.isfinite(numbers).all():
        _refuse("has a state that is not finite")
    return Memories(
        words=tuple(found),
        counts=tuple(found.values()),
        following=following,
        states=numbers.reshape(states, width),
    )


def _words(body: bytes, count: int, frame: Frame) -> tuple[dict[str, int], int]:
    """Return the words with their counts, and where they end."""
    found: dict[str, int] = {}
    at = _HEADER.size
    for _ in range(count):
        if len(body) - at < _WORD.size:
            _refuse("ends within its words")
        times, size = _WORD.unpack_from(body, at)
        at += _WORD.size
        text = body[at : at + size]
        at += size
        if len(text) < size:
            _refuse("ends within its words")
        try:
            word = text.decode()
        except UnicodeDecodeError:
            _refuse("has a word that is not UTF-8")
        if not times or not 0 < size <= LONGEST_WORD or "\n" in word:
            _refuse("has a word without letters, without a count, too long, or with a line feed")
        if word in found or frame.knows(word):
            _refuse("has a word twice, or one of the vocabulary")
        found[word] = times
    return found, at


def _refuse(why: str) -> NoReturn:
    raise PersonalError(f"{why}; remove it, or restore it from a copy")
