"""An interpolated n-gram model of the UTF-8 bytes of words, in the bytes of docs/format.md.

A word is its bytes and a line feed, which also stands before it. The probability of a byte after
those before it goes from none of them to n − 1:

    P_0 = 1 / 256
    P_k(s) = max(c(s) − d_k, 0) / N + (d_k · T + rest) / N · P_{k−1}(s)

where c(s) counts s after the last k − 1 bytes, T is how many different bytes have such a count, and
N is the sum of these counts and of `rest`, the counts that were pruned. A context without counts
leaves P as it is. So the probabilities of all 256 bytes sum to 1, whatever the counts are.
"""

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from micronet_lm.errors import ArtifactError

END = 0x0A
"""Begins and ends a word."""
LARGEST_ORDER = 8
_HEAD = struct.Struct("<Bd")  # order, mass outside the vocabulary


def count_of(byte: int) -> int:
    """Return the count that a byte stands for: up to 31 as it is, then with 5 bits."""
    return byte if byte < 16 else (16 + byte % 16) << (byte // 16 - 1)


def byte_of(count: int) -> int:
    """Return the byte of the largest count that is not above this one."""
    if count < 16:
        return count
    shift = min(count.bit_length() - 5, 14)
    return 16 * shift + min(count >> shift, 31)


@dataclass
class Node:
    """Bytes that were counted: those on the way from the root to here."""

    count: int = 0
    """How often they were counted."""
    rest: int = 0
    """Counts of longer ones that are not stored."""
    children: dict[int, "Node"] = field(default_factory=dict)

    @cached_property
    def total(self) -> int:
        """The sum of all counts after these bytes."""
        return self.rest + sum(child.count for child in self.children.values())


@dataclass(frozen=True, eq=False)
class Spelling:
    """A model of words outside a vocabulary."""

    data: bytes
    """The model as it is stored."""
    order: int
    outside: float
    """The probability that the bytes alone give to all strings outside the vocabulary."""
    discounts: tuple[float, ...]
    """d_1 to d_n."""
    root: Node

    @classmethod
    def from_bytes(cls, data: bytes) -> "Spelling":
        """Read a model; refuse bytes that docs/format.md does not allow."""
        if len(data) < _HEAD.size:
            raise ArtifactError(f"its spelling has {len(data)} bytes, too few for a model")
        order, outside = _HEAD.unpack_from(data)
        if not 1 <= order <= LARGEST_ORDER:
            raise ArtifactError(f"its spelling must have order 1 to {LARGEST_ORDER}, got {order}")
        if not 0 < outside <= 1:  # not a number is not, either
            raise ArtifactError(
                f"its spelling's mass outside the vocabulary must be above 0 and at most 1, got "
                f"{outside}"
            )
        at = _HEAD.size + order
        if len(data) < at or 0 in data[_HEAD.size : at]:
            raise ArtifactError("its spelling lacks discounts, or has one that is 0")
        discounts = tuple(byte / 256 for byte in data[_HEAD.size : at])
        return cls(data, order, outside, discounts, _read_nodes(data, at, order))

    def log_probability(self, word: str) -> float:
        """Return the natural logarithm of P_spelling of a word outside the vocabulary."""
        return self.log_string(word) - math.log(self.outside)

    def log_string(self, word: str) -> float:
        """Return the logarithm of the probability among all strings, known words included."""
        return self.log_bytes(word.encode("utf-8"))

    def log_bytes(self, word: bytes) -> float:
        """Return the same for the bytes of a word, which have no line feed."""
        total = 0.0
        contexts: list[Node | None] = [self.root, self.root.children.get(END)][: self.order]
        for symbol in bytes([*word, END]):
            total += math.log(self._mixed(contexts, symbol))
            longer = [node and node.children.get(symbol) for node in contexts[: self.order - 1]]
            contexts = [self.root, *longer]
        return total

    def chance(self, context: bytes, symbol: int) -> float:
        """Return the probability of a byte after at most order − 1 others."""
        contexts: list[Node | None] = []
        for length in range(len(context) + 1):
            node: Node | None = self.root
            for byte in context[len(context) - length :]:
                node = node.children.get(byte) if node else None
            contexts.append(node)
        return self._mixed(contexts, symbol)

    def _mixed(self, contexts: Sequence[Node | None], symbol: int) -> float:
        """Return the probability of a byte after the nodes of its contexts, the shortest first."""
        chance = 1 / 256
        for node, discount in zip(contexts, self.discounts, strict=False):
            if not node or not node.children:
                continue
            chance *= (discount * len(node.children) + node.rest) / node.total
            if child := node.children.get(symbol):
                chance += (child.count - discount) / node.total
        return chance


def pack(order: int, outside: float, discounts: Iterable[int], root: Node) -> bytes:
    """Return the bytes of a model: nodes in breadth-first order, children by increasing byte."""
    data = bytearray(_HEAD.pack(order, outside))
    data += bytes(discounts)
    level = [root]
    for depth in range(order + 1):
        if depth == 0:
            data += bytes([len(root.children), byte_of(root.rest)])
        following: list[Node] = []
        for node in level:
            for symbol in sorted(node.children):
                child = node.children[symbol]
                data += bytes([symbol, byte_of(child.count)])
                if depth + 1 < order:
                    data.append(len(child.children))
                    if child.children:
                        data.append(byte_of(child.rest))
                following.append(child)
        level = following
    return bytes(data)


def _read_nodes(data: bytes, at: int, order: int) -> Node:
    def take() -> int:
        nonlocal at
        if at >= len(data):
            raise ArtifactError("its spelling ends in the middle of a node: it is truncated")
        at += 1
        return data[at - 1]

    root, wanted = Node(), take()
    if not wanted:
        raise ArtifactError("its spelling must have at least one byte to begin with, got none")
    root.rest = count_of(take())
    level = [(root, wanted)]
    for depth in range(1, order + 1):
        following: list[tuple[Node, int]] = []
        for parent, children in level:
            before = -1
            for _ in range(children):
                symbol, count = take(), take()
                if symbol <= before or not count:
                    raise ArtifactError(
                        f"its spelling has the byte {symbol} out of order, or without a count"
                    )
                before = symbol
                node = parent.children[symbol] = Node(count=count_of(count))
                if depth < order and (wanted := take()):
                    node.rest = count_of(take())
                    following.append((node, wanted))
        level = following
    if at != len(data):
        raise ArtifactError(f"its spelling has {len(data) - at} bytes after its last node")
    return root
