"""Blocks of queries, of the keys that they see, and the band of scores between them.

A block of R queries sees S = R + C − 1 keys. Of its R × S scores, row r uses only the columns r to
r + C − 1: a diagonal band.
"""

from functools import lru_cache

import torch
from torch import Tensor

from micronet_lm.model.sizes import sizes_for


def band(wide: Tensor, context: int) -> Tensor:
    """View the band of (G, R, S) scores as (G, R, C): row r begins at column r."""
    groups, size, span = wide.shape
    return wide.as_strided((groups, size, context), (size * span, span + 1, 1))


def mask_missing(scores: Tensor, missing: int) -> None:
    """Mask keys before the text's beginning in (B, H, T, C) scores, in place.

    Query t's j-th key is number t + j of all keys, of which the first `missing` do not exist.
    """
    if missing:
        context, rows = scores.shape[-1], min(missing, scores.shape[2])
        mask = _missing(rows, context, missing, scores.device)
        scores[:, :, :rows].masked_fill_(mask, float("-inf"))


@lru_cache(maxsize=8)  # all layers have the same
def _missing(rows: int, context: int, missing: int, device: torch.device) -> Tensor:
    """Return which keys do not exist for the first queries: (rows, C)."""
    row = torch.arange(rows, device=device).unsqueeze(1)
    return row + torch.arange(context, device=device) < missing


def blocks(sequence: Tensor, stride: int, length: int) -> Tensor:
    """Cut (B, T', H, K) into pieces of `length`, one per `stride`: (B·H·blocks, length, K).

    The last piece is padded with zeros, which only padded queries see.
    """
    batch, time, heads, width = sequence.shape
    count = -(-(time - (length - stride)) // stride)
    short = (count - 1) * stride + length - time
    if short:
        sequence = torch.nn.functional.pad(sequence, (0, 0, 0, 0, 0, short))
    own, step, head, inner = sequence.stride()
    shape = (batch, heads, count, length, width)
    pieces = sequence.as_strided(shape, (own, head, stride * step, step, inner))
    return pieces.reshape(batch * heads * count, length, width)


def unblock(pieces: Tensor, batch: int, time: int, heads: int) -> Tensor:
    """Undo `blocks` where the pieces do not overlap: (B, T, H, K)."""
    joined = pieces.view(batch, heads, -1, pieces.shape[-1]).transpose(1, 2)
    return joined if joined.shape[1] == time else joined[:, :time]


def overlap_add(pieces: Tensor, batch: int, time: int, heads: int, stride: int) -> Tensor:
    """Undo `blocks` where pieces overlap, adding the overlaps: (B, T', H, K)."""
    groups, length, width = pieces.shape
    count = groups // (batch * heads)
    pieces = pieces.view(batch, heads, count, length, width)
    if sizes_for(pieces.device).adds_overlaps_at_once:
        span = [batch, (count - 1) * stride + length, heads, width]
        pieces = pieces.permute(0, 2, 1, 4, 3)  # (B, blocks, H, K, length)
        added: Tensor = torch.ops.aten.unfold_backward(pieces, span, 1, length, stride)
        return added if added.shape[1] == time else added[:, :time]
    shifts = -(-length // stride)
    total = pieces.new_zeros(batch, heads, count + shifts - 1, stride, width)
    for shift in range(shifts):
        part = pieces[:, :, :, shift * stride : (shift + 1) * stride]
        total[:, :, shift : shift + count, : part.shape[3]].add_(part)
    return total.flatten(2, 3)[:, :, :time].transpose(1, 2)
