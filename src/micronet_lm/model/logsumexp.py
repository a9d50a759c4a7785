"""log Σ exp(W x + b) over a bin's words, in bounded memory and with few passes over the logits.

The log-probability of a word is its own logit, a dot product, minus this number; so the loss needs
no other pass over a bin. The gradient is softmax(W x + b). A small one is kept from the forward
pass, a larger one is computed again. Either way the logits are computed in pieces (`sizes.py`):
on a processor they stay in its cache between the product, the softmax and the next product.
"""

from typing import Any

import torch
from torch import Tensor

from micronet_lm.model.sizes import sizes_for


def linear_logsumexp(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute log Σ_v exp(weight_v · x + bias_v): (N, E), (V, E), (V) → (N), in fp32 or wider."""
    result: Tensor = _LinearLogSumExp.apply(*with_bias(x, weight, bias))  # type: ignore[no-untyped-call]
    return result


def with_bias(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return inputs and weights whose product has the bias in it, in autocast's type.

    The bias becomes one more input that is always 1: broadcasting it would cost a pass.
    """
    device = x.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        x, weight, bias = x.to(dtype), weight.to(dtype), bias.to(dtype)
    x = torch.cat([x, x.new_ones(len(x), 1)], dim=1)
    return x, torch.cat([weight, bias.unsqueeze(1)], dim=1)


class _LinearLogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        count, words = len(x), len(weight)
        room, sizes = Room(x), sizes_for(x.device)
        if any(ctx.needs_input_grad) and 4 * count * words <= sizes.logits_kept:
            totals, kept = [], []
            for block in pieces(count, words, sizes.logits_block):
                softmax = x.new_empty(len(x[block]), words)
                totals += [
                    room.logsumexp(x[block][piece], weight, out=softmax[piece])
                    for piece in pieces(len(softmax), words, sizes.logits)
                ]
                kept.append(softmax)
            ctx.save_for_backward(x, weight, *kept)
            return totals[0] if len(totals) == 1 else torch.cat(totals)
        # Pieces of words: each has its own total, and the totals have theirs.
        by_piece = torch.stack(
            [room.logsumexp(x, weight[piece]) for piece in pieces(words, count, sizes.logits)]
        )
        total = torch.logsumexp(by_piece, dim=0)  # (pieces, N) → (N)
        ctx.save_for_backward(x, weight)
        ctx.shares = (by_piece - total).exp_().to(x.dtype)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        x, weight, *kept = ctx.saved_tensors
        count, words, sizes = len(x), len(weight), sizes_for(x.device)
        gradient = gradients[0].to(x.dtype).unsqueeze(1)  # (N, 1)
        # Scaling x and the results by the gradient saves scaling the much larger softmax.
        if kept:
            d_x, d_weight = torch.empty_like(x), torch.empty_like(weight)
            blocks = pieces(count, words, sizes.logits_block)
            for number, (block, softmax) in enumerate(zip(blocks, kept, strict=True)):
                torch.mm(softmax, weight, out=d_x[block])
                beta = min(number, 1)  # the first block's product is written, the others added
                d_weight.addmm_(softmax.mT, x[block] * gradient[block], beta=beta)
            return d_x.mul_(gradient), d_weight
        d_x, d_weight = torch.zeros_like(x), torch.empty_like(weight)
        room = Room(x)
        for piece, share in zip(pieces(words, count, sizes.logits), ctx.shares, strict=True):
            softmax = room.take("kept", count, len(weight[piece]), x.dtype)
            room.softmax(x, weight[piece], out=softmax)
            scale = gradient * share.unsqueeze(1)  # what this piece has of the whole softmax
            torch.mm(softmax.mT, x * scale, out=d_weight[piece])
            d_x.addcmul_(torch.mm(softmax, weight[piece]), scale)
        return d_x, d_weight


class Room:
    """Memory that all pieces reuse, so that it stays in the processor's cache."""

    def __init__(self, like: Tensor) -> None:
        self._like = like
        self._stores: dict[str, Tensor] = {}

    def take(self, name: str, rows: int, columns: int, dtype: torch.dtype) -> Tensor:
        """Return a (rows, columns) tensor, valid until the next call with the same name."""
        store = self._stores.get(name)
        if store is None or store.numel() < rows * columns:
            store = self._like.new_empty(rows * columns, dtype=dtype)
            self._stores[name] = store
        return store[: rows * columns].view(rows, columns)

    def logits(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return the logits (N, V), valid until the next call with operands of this size."""
        return self.take("logits", len(x), len(weight), x.dtype)

    def logsumexp(self, x: Tensor, weight: Tensor, out: Tensor | None = None) -> Tensor:
        """Return log Σ exp of the logits (N), and write their softmax (N, V) to `out`."""
        exact = torch.promote_types(x.dtype, torch.float32)
        if out is not None and out.dtype == exact:
            softmax = out
        else:
            softmax = self.take("softmax", len(x), len(weight), exact)
        logits = self.softmax(x, weight, softmax)
        if out is not None and out is not softmax:
            out.copy_(softmax)
        # The largest probability is 1 / Σ exp(logit − largest logit).
        return logits.amax(dim=-1).to(exact) - softmax.amax(dim=-1).log_()

    def softmax(self, x: Tensor, weight: Tensor, out: Tensor) -> Tensor:
        """Write the softmax of the logits (N, V) to `out`, in its type, and return the logits."""
        logits = torch.mm(x, weight.mT, out=self.logits(x, weight))
        torch.softmax(logits, dim=-1, dtype=out.dtype, out=out)
        return logits


def pieces(length: int, others: int, size: int) -> list[slice]:
    """Cut one side of the logits, `length`, into pieces of about `size` bytes as fp32.

    Pieces are whole cache lines: a product with few inputs is four times slower on others.
    """
    piece = max(64, size // (4 * max(1, others)) // 64 * 64)
    return [slice(low, low + piece) for low in range(0, max(1, length), piece)]
