"""Sizes of the pieces in which a device computes what does not fit, or need not be, in one.

A processor is fastest on pieces that stay in its cache between one operation and the next. A GPU
needs some microseconds to begin any operation: there, pieces are as large as its memory allows.
Results agree up to the order of sums. This is the one place that knows the difference.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of pieces on one kind of device."""

    logits_kept: int
    """Largest fp32 softmax in bytes that is kept for the backward pass."""

    logits_block: int
    """Size in bytes of the blocks it is kept in."""

    logits: int
    """Size in bytes of a piece of logits between its product and the next."""

    recalled_queries: int
    """Queries of the cache per block. A smaller block masks less, a larger one has fewer pieces."""

    recalled: int
    """Largest block of the cache's scores in bytes, if it is of several sequences; 0: of one."""

    attention_queries: int
    """Queries of attention per block. A smaller block wastes less, a larger one needs more keys."""

    adds_overlaps_at_once: bool
    """Whether one operation adds the gradients of keys that several blocks share, or one per block
    that sees a key."""

    masks_attention: bool
    """Whether attention computes and masks the scores outside its band: fewer operations, on half
    as many scores again."""

    distribution: int
    """Largest block of whole distributions in bytes: tokens × vocabulary in fp32."""

    compared_rows: int
    """Tokens whose whole distributions under two models are compared at once."""

    chunk: int
    """Tokens of a text that are read at once."""


CPU = Sizes(
    logits_kept=128 << 20,
    logits_block=24 << 20,  # larger ones would be fresh memory each time
    logits=4 << 20,  # stays in the processor's cache
    recalled_queries=128,
    recalled=0,
    attention_queries=48,
    adds_overlaps_at_once=False,
    masks_attention=False,
    # Above half of what the C library keeps (see `training.memory`), every block and its running
    # sums in fp64 would be fresh memory from the system: 64 MB are half as fast.
    distribution=16 << 20,
    compared_rows=128,
    chunk=4032,
)
"""Measured on processors with 2 to 32 MB of cache."""

GPU = Sizes(
    logits_kept=1 << 30,
    logits_block=1 << 30,
    logits=1 << 30,
    recalled_queries=1152,
    recalled=512 << 20,
    attention_queries=48,
    adds_overlaps_at_once=True,
    masks_attention=True,
    distribution=512 << 20,
    compared_rows=1024,
    chunk=16_128,
)
"""Chosen for few operations and less than 8 GB of memory; never measured on a GPU."""


def sizes_for(device: torch.device) -> Sizes:
    """Return the sizes of a device."""
    return CPU if device.type == "cpu" else GPU
