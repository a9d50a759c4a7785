"""The teacher's distribution for a span of text, independent of other spans.

The teacher first reads as much text before the span as a hidden state and the cache can reach, then
the span itself, both in chunks of a grid that is fixed on one kind of device. So the numbers are
bit-exactly the same from one process, from several, and after a kill. The text before the span is
L(C − 1) tokens, plus the size of the cache.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from micronet_lm.model import LanguageModel, Memory
from micronet_lm.model.sizes import sizes_for
from micronet_lm.training.device import on_device


class Piece(NamedTuple):
    """The teacher's distributions after some tokens."""

    place: int
    """Position of the first of them in the text."""

    distribution: Tensor
    """(N, V) probabilities of the next word."""

    following: Tensor
    """(N) the true next words."""


@torch.inference_mode()
def distributions(
    teacher: LanguageModel, ids: NDArray[np.unsignedinteger], span: range
) -> Iterator[Piece]:
    """Yield the distributions after the tokens of a span, in pieces of bounded size."""
    device = next(teacher.parameters()).device
    cache = 0 if teacher.cache is None else teacher.cache.size
    first = max(0, span.start - (teacher.config.reach - 1) - cache)
    sizes = sizes_for(device)
    rows = max(1, sizes.distribution // (4 * teacher.config.bounds[-1]))
    state, memory, chunk = None, None, sizes.chunk
    edges = [*range(first, span.start, chunk), *range(span.start, span.stop, chunk), span.stop]
    for low, high in pairwise(edges):
        words = on_device(ids[low : high + 1].astype(np.int64), device)
        hidden, state = teacher(words[None, :-1], state)  # (1, T, D)
        following = words[None, 1:]
        if low < span.start:
            memory = teacher.remember(memory, hidden, following)
            continue
        for begin in range(0, high - low, rows):
            part = slice(begin, min(begin + rows, high - low))
            yield _piece(teacher, low + begin, hidden[:, part], following[:, part], memory)
            memory = teacher.remember(memory, hidden[:, part], following[:, part])


def _piece(
    teacher: LanguageModel, place: int, hidden: Tensor, following: Tensor, memory: Memory | None
) -> Piece:
    logs = teacher.log_distribution(hidden, following, memory)
    return Piece(place, logs[0].exp_(), following[0])
