"""Attention of every token to the last C tokens, without work outside that band.

Time is cut into blocks of R queries. A block's queries together see S = R + C − 1 keys, so one
batched product gives the scores of a block as an R × S matrix in which row r uses only the
columns r to r + C − 1. That diagonal band is a strided *view* (`band`) with rows of exactly C
entries: softmax, position scores and their gradients run on C entries per query, and nothing is
masked except at the beginning of a text. Then probabilities are written through the same view
into a matrix of zeros, and one batched product with the values follows.

A GPU, to which every operation costs more than some wasted work, masks the rest of the R × S
scores instead (`masked_attention.py`).
"""

from typing import Any, Protocol

import torch
from torch import Tensor

from micronet_lm.model.bands import band, blocks, mask_missing, overlap_add, unblock
from micronet_lm.model.masked_attention import masked_attention
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
    *,
    factor: float = 1.0,
) -> Tensor:
    """Attend from each of T queries to the C keys that end at its own.

    Args:
        queries: (B, T, H, K).
        keys: (B, P + T, H, K): the P keys before the first query, then the queries' own.
        values: (B, P + T, H, d_v), likewise.
        positions: (K, C); column j belongs to the key that lies C − 1 − j tokens back.
        missing: number of first keys that do not exist because the text begins after them.
        rounding: of the probabilities, in a quantized model.
        factor: of all scores: 1 / √K.

    Returns:
        (B, T, H, d_v).

    """
    if rounding is None and sizes_for(queries.device).masks_attention:
        return masked_attention(queries, keys, values, positions, missing, factor)
    queries = queries * factor
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
        q = blocks(queries, size, size)  # (G, R, K), with G = B·H·blocks
        k = blocks(keys, size, size + context - 1)  # (G, S, K)
        v = blocks(values, size, size + context - 1)  # (G, S, d_v)
        ctx.positions_type = positions.dtype
        positions = positions.to(q.dtype)

        wide = torch.bmm(q, k.mT)  # (G, R, S)
        scores = torch.mm(q.flatten(0, 1), positions).view(*q.shape[:2], context)
        scores = scores.add_(band(wide, context))  # (G, R, C)
        exact = torch.promote_types(scores.dtype, torch.float32)
        mask_missing(scores.view(batch, heads, -1, context), missing)
        wide.zero_()
        probability = torch.softmax(scores, dim=-1, dtype=exact)
        used = probability if rounding is None else rounding.forward(probability)
        band(wide, context).copy_(used)
        output = torch.bmm(wide, v)  # (G, R, d_v)

        ctx.rounding = rounding
        kept = () if rounding is None else (probability,)
        ctx.save_for_backward(q, k, v, positions, wide, *kept)
        ctx.shape = (batch, time, heads, keys.shape[1])
        return unblock(output, batch, time, heads)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        q, k, v, positions, wide, *kept = ctx.saved_tensors
        batch, time, heads, span = ctx.shape
        context, size = positions.shape[1], q.shape[1]
        g = blocks(gradient.to(q.dtype), size, size)  # (G, R, d_v)

        d_values = torch.bmm(wide.mT, g)  # (G, S, d_v)
        d_wide = torch.bmm(g, v.mT)  # (G, R, S)
        # Softmax backward on the band: p · (dp − Σ p·dp).
        probability, d_probability, d_scale = band(wide, context), band(d_wide, context), None
        if kept:
            (probability,) = kept
            d_probability, d_scale = ctx.rounding.backward(probability, d_probability)
        d_scores = d_probability * probability  # (G, R, C)
        total = d_scores.sum(dim=-1, keepdim=True)
        d_scores = d_scores.addcmul_(probability, total, value=-1)
        d_wide.zero_()
        band(d_wide, context).copy_(d_scores)

        flat = d_scores.flatten(0, 1)  # (G·R, C)
        d_positions = torch.mm(q.flatten(0, 1).mT, flat)  # (K, C)
        d_queries = torch.mm(flat, positions.mT).view_as(q)
        d_queries = d_queries.baddbmm_(d_wide, k)  # (G, R, K)
        d_keys = torch.bmm(d_wide.mT, q)  # (G, S, K)
        return (
            unblock(d_queries, batch, time, heads),
            overlap_add(d_keys, batch, span, heads, size),
            overlap_add(d_values, batch, span, heads, size),
            d_positions.to(ctx.positions_type),
            None,
            d_scale,
            None,
        )
