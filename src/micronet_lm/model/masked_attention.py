"""Windowed attention in few operations, for a GPU: scores outside the band are computed and masked.

A block of R queries and S keys has R × S scores, of which C per row are used. Softmax and its
gradient run on whole rows, in one operation each, and probabilities outside the band are zeros
already. With C = 97 and R = 48 that is half as much work again on the scores.
"""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from micronet_lm.model.bands import band, blocks, overlap_add, unblock
from micronet_lm.model.sizes import sizes_for


def masked_attention(
    queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor, missing: int, factor: float
) -> Tensor:
    """Return what `windowed_attention` returns, up to the order of sums."""
    output: Tensor = _MaskedAttention.apply(  # type: ignore[no-untyped-call]
        queries, keys, values, positions, missing, factor
    )
    return output


class _MaskedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        positions: Tensor,
        missing: int,
        factor: float,
    ) -> Tensor:
        batch, time, heads, _ = queries.shape
        size = min(sizes_for(queries.device).attention_queries, time)  # R
        context = positions.shape[1]  # C
        span = size + context - 1  # S
        q = blocks(queries, size, size)  # (G, R, K), with G = B·H·blocks
        k = blocks(keys, size, span)  # (G, S, K)
        v = blocks(values, size, span)  # (G, S, d_v)
        ctx.positions_type = positions.dtype
        positions = positions.to(q.dtype)

        # One more entry per row than scores makes the band of all blocks one matrix.
        room = q.new_empty(len(q) * size, span + 1)  # (G·R, S + 1)
        scores = room.as_strided((len(q), size, span), (size * (span + 1), span, 1))  # (G, R, S)
        scores.baddbmm_(q, k.mT, beta=0, alpha=factor)
        room[:, :context].addmm_(q.flatten(0, 1), positions, alpha=factor)
        by_block = scores.view(batch * heads, -1, size, span)
        mask = _outside(by_block.shape[1], size, context, missing, q.device)
        masked = by_block.masked_fill(mask, float("-inf")).view_as(scores)
        probability = torch.softmax(masked, dim=-1, dtype=scores.dtype)
        output = torch.bmm(probability, v)  # (G, R, d_v)

        ctx.save_for_backward(q, k, v, positions, probability)
        ctx.shape, ctx.factor = (batch, time, heads, keys.shape[1]), factor
        return unblock(output, batch, time, heads)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        q, k, v, positions, probability = ctx.saved_tensors
        batch, time, heads, span = ctx.shape
        context, size, factor = positions.shape[1], q.shape[1], ctx.factor
        g = blocks(gradient.to(q.dtype), size, size)  # (G, R, d_v)

        d_values = torch.bmm(probability.mT, g)  # (G, S, d_v)
        # p · (dp − Σ p·dp), which is 0 outside the band, where p is.
        d_scores = torch.ops.aten._softmax_backward_data(
            torch.bmm(g, v.mT), probability, -1, probability.dtype
        )  # (G, R, S)
        flat = band(d_scores, context).flatten(0, 1)  # (G·R, C)
        d_positions = torch.empty_like(positions)  # (K, C)
        d_positions.addmm_(q.flatten(0, 1).mT, flat, beta=0, alpha=factor)
        d_queries = q.new_empty(
            len(flat), q.shape[2]
        )  # (G·R, K): q itself may be a view without it
        d_queries.addmm_(flat, positions.mT, beta=0, alpha=factor)
        d_queries = d_queries.view(q.shape)  # (G, R, K)
        d_queries.baddbmm_(d_scores, k, alpha=factor)
        d_keys = torch.empty_like(k)  # (G, S, K)
        d_keys.baddbmm_(d_scores.mT, q, beta=0, alpha=factor)
        return (
            unblock(d_queries, batch, time, heads),
            overlap_add(d_keys, batch, span, heads, size),
            overlap_add(d_values, batch, span, heads, size),
            d_positions.to(ctx.positions_type),
            None,
            None,
        )


@lru_cache(maxsize=8)  # all layers have the same
def _outside(count: int, size: int, context: int, missing: int, device: torch.device) -> Tensor:
    """Return which keys a query does not see, or do not exist: (blocks, R, S)."""
    row = torch.arange(size, device=device).unsqueeze(1)
    key = torch.arange(size + context - 1, device=device)
    beside = (key < row) | (key >= row + context)  # (R, S)
    number = size * torch.arange(count, device=device).view(-1, 1, 1) + key  # (blocks, 1, S)
    return beside | (number < missing)
