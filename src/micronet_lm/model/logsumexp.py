"""log Σ exp(W x + b) over a bin's words, in bounded memory and with few passes over the logits.

The log-probability of a word is its own logit, a dot product, minus this number; so the loss needs
no other pass over a bin. The gradient is softmax(W x + b). It is kept from the forward pass while
it is small; otherwise the logits are computed again, piece by piece of the words, each piece small
enough to stay in the processor's cache.
"""

from typing import Any

import torch
from torch import Tensor

KEEP_BYTES = 128 << 20
"""Logits up to this size are kept for the backward pass instead of being computed again."""

PIECE_BYTES = 4 << 20
"""Size that the logits of one piece are cut to."""


def linear_logsumexp(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute log Σ_v exp(weight_v · x + bias_v): (N, E), (V, E), (V) → (N), in fp32 or wider."""
    device = x.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        x, weight, bias = x.to(dtype), weight.to(dtype), bias.to(dtype)
    # The bias goes in as one more input that is always 1: broadcasting it would cost a pass.
    x = torch.cat([x, x.new_ones(len(x), 1)], dim=1)
    weight = torch.cat([weight, bias.unsqueeze(1)], dim=1)
    result: Tensor = _LinearLogSumExp.apply(x, weight)  # type: ignore[no-untyped-call]
    return result


class _LinearLogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        count, words = len(x), len(weight)
        # Without anybody to keep them for (evaluation), small pieces are always faster.
        if any(ctx.needs_input_grad) and 4 * count * words <= KEEP_BYTES:
            total, exponentials = _exponentials(x, weight)
            softmax = exponentials.div_(exponentials.sum(dim=-1, keepdim=True)).to(x.dtype)
            ctx.save_for_backward(x, weight, total, softmax)
            return total
        pieces = _pieces(count, words)
        parts = [_exponentials(x, weight[piece])[0] for piece in pieces]
        total = torch.logsumexp(torch.stack(parts), dim=0)
        ctx.save_for_backward(x, weight, total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        x, weight, total, *kept = ctx.saved_tensors
        gradient = gradients[0].to(x.dtype).unsqueeze(1)  # (N, 1)
        scaled = x * gradient  # scaling x instead of the softmax saves a pass over the latter
        if kept:
            (softmax,) = kept
            return torch.mm(softmax, weight).mul_(gradient), torch.mm(softmax.mT, scaled)
        d_x = torch.zeros_like(x)
        d_weight = torch.empty_like(weight)
        for piece in _pieces(len(x), len(weight)):
            logits = torch.mm(x, weight[piece].mT)
            softmax = logits.sub_(total.unsqueeze(1)).exp_()  # (N, piece)
            torch.mm(softmax.mT, scaled, out=d_weight[piece])
            d_x.addmm_(softmax, weight[piece])
        return d_x.mul_(gradient), d_weight


def _exponentials(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return log Σ exp of the logits (N), and exp of the logits less their maximum (N, V)."""
    logits = torch.mm(x, weight.mT)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    largest = logits.amax(dim=-1, keepdim=True)
    exponentials = logits.sub_(largest).exp_()
    return exponentials.sum(dim=-1).log_() + largest.squeeze(1), exponentials


def _pieces(count: int, words: int) -> list[slice]:
    """Ranges of words whose logits for `count` tokens take about `PIECE_BYTES`."""
    size = max(256, PIECE_BYTES // (4 * max(1, count)))
    return [slice(low, min(low + size, words)) for low in range(0, words, size)]
