"""Log-probabilities of a few words per token under one softmax, without extra dot products.

Distillation needs some thirty words per token. Their logits are computed anyway, because the sum
over all words needs them: they are picked while a piece of the logits is in the processor's
cache. In the backward pass, the gradient of a piece of logits is −softmax times the sum of the
words' gradients, plus those gradients at the words themselves, followed by the same two products
that log Σ exp alone needs. Gathering N·K rows of the table would move K times as much memory.
"""

from typing import Any

import torch
from torch import Tensor

from micronet_lm.model.logsumexp import Room, pieces, with_bias
from micronet_lm.model.sizes import sizes_for


def linear_log_softmax(x: Tensor, weight: Tensor, bias: Tensor, words: Tensor) -> Tensor:
    """Compute log softmax(weight · x + bias) at some words: (N, E), (V, E), (V), (N, K) → (N, K).

    The result is in fp32 or wider. A word may occur several times in a row of `words`.
    """
    x, weight = with_bias(x, weight, bias)
    result: Tensor = _LinearLogSoftmax.apply(x, weight, words)  # type: ignore[no-untyped-call]
    return result


class _LinearLogSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, words: Tensor) -> Tensor:
        count, size, sizes = len(x), len(weight), sizes_for(x.device)
        exact = torch.promote_types(x.dtype, torch.float32)
        keep = any(ctx.needs_input_grad) and 4 * count * size <= sizes.logits_kept
        room, kept = Room(x), []
        result = x.new_empty(words.shape, dtype=exact)
        for piece in pieces(count, size, sizes.logits):
            part = x[piece]
            softmax = x.new_empty(len(part), size) if keep else None
            total = room.logsumexp(part, weight, out=softmax)
            chosen = room.logits(part, weight).gather(1, words[piece])  # (n, K)
            result[piece] = chosen.to(exact) - total.unsqueeze(1)
            kept += [softmax] if softmax is not None else []
        ctx.save_for_backward(x, weight, words, *kept)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients  # (N, K)
        x, weight, words, *kept = ctx.saved_tensors
        count, size = len(x), len(weight)
        exact = gradient.dtype
        total = gradient.sum(dim=1, keepdim=True).neg_()
        room = Room(x)
        d_x = torch.empty_like(x)
        d_weight = torch.zeros_like(weight, dtype=exact)  # a sum of many pieces, so not in bfloat16
        for number, piece in enumerate(pieces(count, size, sizes_for(x.device).logits)):
            part = x[piece]
            if kept:
                softmax = kept[number]
            else:
                softmax = room.take("kept", len(part), size, exact)
                room.softmax(part, weight, softmax)
            d_logits = room.take("gradient", len(part), size, exact)
            torch.mul(softmax, total[piece], out=d_logits)
            d_logits.scatter_add_(1, words[piece], gradient[piece])
            if x.dtype != exact:
                d_logits = room.take("rounded", len(part), size, x.dtype).copy_(d_logits)
            torch.mm(d_logits, weight, out=d_x[piece])
            d_weight += torch.mm(d_logits.mT, part)
        return d_x, d_weight.to(weight.dtype), None
