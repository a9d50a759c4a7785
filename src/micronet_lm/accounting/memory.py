"""The memory of a streaming step, which the challenge does not count: activations and state.

The maximum transient activation size is the largest number of values that a streaming step holds
at one moment besides weights and state. A moment lists all values still needed then.
"""

from dataclasses import dataclass
from fractions import Fraction

from micronet_lm.accounting.target import Target
from micronet_lm.config import FULL, Place


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One moment of a streaming step."""

    name: str
    holds: tuple[tuple[str, int], ...]
    """Names and sizes of the activations in memory."""

    @property
    def size(self) -> int:
        """Number of values in memory."""
        return sum(size for _, size in self.holds)


@dataclass(frozen=True, kw_only=True)
class State:
    """The state of a stream between two tokens: number of values, and bytes at their bits."""

    keys: int
    values: int
    cache: int
    """Hidden states and, one number each, the words that followed them."""
    bytes: Fraction

    @property
    def size(self) -> int:
        """Total number of values."""
        return self.keys + self.values + self.cache


def moments(target: Target) -> list[Moment]:
    """Return the moments of a streaming step that need much memory."""
    shape = target.shape
    d, h, v = shape.width, shape.heads, shape.value_width
    qkv = h * (2 * shape.key_width + v)
    tails, words = len(shape.cutoffs), shape.bounds[-1]
    found = [
        ("input projection", [("embedding", max(shape.embedding_widths)), ("input", d)]),
        ("queries, keys, values", [("residual", d), ("normalized", d), ("qkv", qkv)]),
        (
            "attention",
            [("residual", d), ("qkv", qkv), ("scores", h * shape.context), ("mixed", h * v)],
        ),
        ("attention output", [("residual", d), ("mixed", h * v), ("output", d)]),
        (
            "feed-forward",
            [("residual", d), ("normalized or output", d), ("inner", shape.ffn_width)],
        ),
        (
            "prediction",
            [
                ("hidden state", d),
                ("projected", max(w if w != d else 0 for w in shape.embedding_widths)),
                ("probabilities", words + tails),
                ("cache votes", target.cache),
            ],
        ),
    ]
    return [Moment(name=name, holds=tuple(holds)) for name, holds in found]


def transient(target: Target) -> Moment:
    """Return the moment of the maximum transient activation size."""
    return max(moments(target), key=lambda moment: moment.size)


def state(target: Target) -> State:
    """Count the keys and values of the last C − 1 tokens, and the cache."""
    shape = target.shape
    tokens = shape.layers * (shape.context - 1) * shape.heads
    keys, values = tokens * shape.key_width, tokens * shape.value_width
    hidden = target.cache * shape.width
    bits = (
        (keys + values) * target.activation_bits(Place.QKV)
        + hidden * target.activation_bits(Place.HIDDEN)
        + target.cache * FULL
    )
    return State(keys=keys, values=values, cache=hidden + target.cache, bytes=Fraction(bits, 8))
