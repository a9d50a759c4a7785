"""Attention of every token to the last C tokens, without work outside that band.

Time is cut into blocks of R queries. A block's queries together see S = R + C − 1 keys, so one
batched product gives the scores of a block as an R × S matrix in which row r uses only the
columns r to r + C − 1. That diagonal band is a strided *view* (`_band`) with rows of exactly C
entries: softmax, position scores and their gradients run on C entries per query, and nothing is
masked except at the beginning of a text. Then probabilities are written through the same view
into a matrix of zeros, and one batched product with the values follows.
"""

from functools import lru_cache
from typing import Any, Protocol

import torch
from torch import Tensor

from micronet_lm.model.sizes import sizes_for


class Rounding(Protocol):
    """Rounding of the probabilities before they weight the values, with its gradient."""

    scale: Tensor | None
    """Its learned scale, if any."""

    def forward(self, probabilities: Tensor) -> Tensor:
        """Round (G, R, C) probabilities."""

    def backward(self, probabilities: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the gradients of the probabilities and of the scale from those of the rounded."""


def windowed_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    positions: Tensor,
    missing: int,
    rounding: Rounding | None = None,
) -> Tensor:
    """Attend from each of T queries to the C keys that end at its own.

    Args:
        queries: (B, T, H, K), already divided by √K.
        keys: (B, P + T, H, K): the P keys before the first query, then the queries' own.
        values: (B, P + T, H, d_v), likewise.
        positions: (K, C); column j belongs to the key that lies C − 1 − j tokens back.
        missing: number of first keys that do not exist because the text begins after them.
        rounding: of the probabilities, in a quantized model.

    Returns:
        (B, T, H, d_v).

    """
    scale = None if rounding is None else rounding.scale
    output: Tensor = _WindowedAttention.apply(  # type: ignore[no-untyped-call]
        queries, keys, values, positions, missing, scale, rounding
    )
    return output


class _WindowedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        positions: Tensor,
        missing: int,
        scale: Tensor | None,  # `rounding.scale`, an argument of its own to get its gradient
        rounding: Rounding | None,
    ) -> Tensor:
        batch, time, heads, _ = queries.shape
        size = min(sizes_for(queries.device).attention_queries, time)  # R
        context = positions.shape[1]  # C
        q = _blocks(queries, size, size)  # (G, R, K), with G = B·H·blocks
        k = _blocks(keys, size, size + context - 1)  # (G, S, K)
        v = _blocks(values, size, size + context - 1)  # (G, S, d_v)
        ctx.positions_type = positions.dtype
        positions = positions.to(q.dtype)

        wide = torch.bmm(q, k.mT)  # (G, R, S)
        scores = torch.mm(q.flatten(0, 1), positions).view(*q.shape[:2], context)
        scores = scores.add_(_band(wide, context))  # (G, R, C)
        exact = torch.promote_types(scores.dtype, torch.float32)
        _mask_missing(scores.view(batch, heads, -1, context), missing)
        wide.zero_()
        probability = torch.softmax(scores, dim=-1, dtype=exact)
        used = probability if rounding is None else rounding.forward(probability)
        _band(wide, context).copy_(used)
        output = torch.bmm(wide, v)  # (G, R, d_v)

        ctx.rounding = rounding
        kept = () if rounding is None else (probability,)
        ctx.save_for_backward(q, k, v, positions, wide, *kept)
        ctx.shape = (batch, time, heads, keys.shape[1])
        return _unblock(output, batch, time, heads)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        q, k, v, positions, wide, *kept = ctx.saved_tensors
        batch, time, heads, span = ctx.shape
        context, size = positions.shape[1], q.shape[1]
        g = _blocks(gradient.to(q.dtype), size, size)  # (G, R, d_v)

        d_values = torch.bmm(wide.mT, g)  # (G, S, d_v)
        d_wide = torch.bmm(g, v.mT)  # (G, R, S)
        # Softmax backward on the band: p · (dp − Σ p·dp).
        probability, d_probability, d_scale = _band(wide, context), _band(d_wide, context), None
        if kept:
            (probability,) = kept
            d_probability, d_scale = ctx.rounding.backward(probability, d_probability)
        d_scores = d_probability * probability  # (G, R, C)
        total = d_scores.sum(dim=-1, keepdim=True)
        d_scores = d_scores.addcmul_(probability, total, value=-1)
        d_wide.zero_()
        _band(d_wide, context).copy_(d_scores)

        flat = d_scores.flatten(0, 1)  # (G·R, C)
        d_positions = torch.mm(q.flatten(0, 1).mT, flat)  # (K, C)
        d_queries = torch.mm(flat, positions.mT).view_as(q)
        d_queries = d_queries.baddbmm_(d_wide, k)  # (G, R, K)
        d_keys = torch.bmm(d_wide.mT, q)  # (G, S, K)
        return (
            _unblock(d_queries, batch, time, heads),
            _overlap_add(d_keys, batch, span, heads, size),
            _overlap_add(d_values, batch, span, heads, size),
            d_positions.to(ctx.positions_type),
            None,
            d_scale,
            None,
        )


def _band(wide: Tensor, context: int) -> Tensor:
    """View the band of (G, R, S) scores as (G, R, C): row r begins at column r."""
    groups, size, span = wide.shape
    return wide.as_strided((groups, size, context), (size * span, span + 1, 1))


def _mask_missing(scores: Tensor, missing: int) -> None:
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


def _blocks(sequence: Tensor, stride: int, length: int) -> Tensor:
    """Cut (B, T', H, K) into pieces of `length`, one per `stride`: (B·H·blocks, length, K).

    The last piece is padded with zeros, which only padded queries see.
    """
    batch, time, heads, width = sequence.shape
    blocks = -(-(time - (length - stride)) // stride)
    short = (blocks - 1) * stride + length - time
    if short:
        sequence = torch.nn.functional.pad(sequence, (0, 0, 0, 0, 0, short))
    pieces = sequence.unfold(1, length, stride)  # (B, blocks, H, K, length)
    return pieces.permute(0, 2, 1, 4, 3).reshape(batch * heads * blocks, length, width)


def _unblock(pieces: Tensor, batch: int, time: int, heads: int) -> Tensor:
    """Undo `_blocks` where the pieces do not overlap: (B, T, H, K)."""
    width = pieces.shape[-1]
    return pieces.view(batch, heads, -1, width)[:, :, :time].transpose(1, 2)


def _overlap_add(pieces: Tensor, batch: int, time: int, heads: int, stride: int) -> Tensor:
    """Undo `_blocks` where pieces overlap, adding the overlaps: (B, T', H, K)."""
    groups, length, width = pieces.shape
    blocks = groups // (batch * heads)
    pieces = pieces.view(batch, heads, blocks, length, width)
    if sizes_for(pieces.device).adds_overlaps_at_once:
        span = [batch, heads, (blocks - 1) * stride + length, width]
        added: Tensor = torch.ops.aten.unfold_backward(pieces.mT, span, 2, length, stride)
        return added[:, :, :time].transpose(1, 2)
    shifts = -(-length // stride)
    total = pieces.new_zeros(batch, heads, blocks + shifts - 1, stride, width)
    for shift in range(shifts):
        part = pieces[:, :, :, shift * stride : (shift + 1) * stride]
        total[:, :, shift : shift + blocks, : part.shape[3]].add_(part)
    return total.flatten(2, 3)[:, :, :time].transpose(1, 2)
