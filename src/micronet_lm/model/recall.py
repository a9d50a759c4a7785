"""What the last n activations of a text say about the next word, without work outside that band.

P_cache is a softmax over the cache's entries: each votes for the word that followed it (section
3.5). The loss needs only the vote for one word a token, so nothing here is as wide as the
vocabulary. Time is cut into blocks of R queries; a block sees R + n − 1 activations, and the two
corners of its score matrix that lie outside the band are masked. Scores, softmax and comparison of
one block stay in the processor's cache.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

BLOCK = 128
"""Queries a block (R). A smaller block masks less, a larger one makes better products."""


def recall(queries: Tensor, hidden: Tensor, words: Tensor, past: Tensor, size: int) -> Tensor:
    """Compute log P_cache of the word that really follows each of T activations.

    Args:
        queries: (B, T, D): θ · hidden.
        hidden: (B, T, D) activations.
        words: (B, M + T): the word that followed each activation, the past ones first.
        past: (B, M, D) activations before these; no gradient goes into them.
        size: how many activations the cache holds (n).

    Returns:
        (B, T) in fp32 or wider; −∞ where the cache is empty or does not hold the word.

    """
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        queries, hidden = queries.to(dtype), hidden.to(dtype)
    past = past.to(hidden.dtype)
    result: Tensor = _Recall.apply(queries, hidden, words, past, size)  # type: ignore[no-untyped-call]
    return result


@torch.no_grad()
def recalled_words(
    queries: Tensor, hidden: Tensor, words: Tensor, past: Tensor, size: int, vocabulary: int
) -> Tensor:
    """Compute P_cache of all words: (B, T, V); zero where the cache is empty. See `recall`."""
    result = queries.new_zeros(*queries.shape[:2], vocabulary)
    for block in _blocks(queries, torch.cat([past, hidden], dim=1), size):
        votes = result[block.row, block.time]  # (R, V)
        votes.index_add_(1, words[block.row, block.span], block.softmax.to(votes.dtype))
    return result


class _Block(NamedTuple):
    """Some queries of one sequence, and the activations that they may look at."""

    row: int
    """Which sequence."""

    time: slice
    """Which of its T queries."""

    span: slice
    """Which of its M + T activations."""

    softmax: Tensor
    """(R, S) how much each of these queries looks at each of these activations."""


class _Recall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, hidden: Tensor, words: Tensor, past: Tensor, size: int
    ) -> Tensor:
        keys = torch.cat([past, hidden], dim=1)  # (B, M + T, D)
        words = words.int()
        targets = words[:, past.shape[1] :]
        exact = torch.promote_types(hidden.dtype, torch.float32)
        chance = queries.new_zeros(targets.shape, dtype=exact)  # P_cache (B, T)
        keep = any(ctx.needs_input_grad)
        ctx.places, kept = [], []
        for row, time, span, softmax in _blocks(queries, keys, size):
            match = words[row, span] == targets[row, time].unsqueeze(1)  # (R, S)
            chance[row, time] = (softmax * match).sum(dim=1)
            if keep:
                ctx.places.append((row, time, span))
                kept += [softmax.to(hidden.dtype), match]
        ctx.save_for_backward(queries, keys, chance, *kept)
        return chance.log()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        queries, keys, chance, *kept = ctx.saved_tensors
        before = keys.shape[1] - queries.shape[1]  # M
        d_queries, d_hidden = torch.zeros_like(queries), torch.zeros_like(queries)
        # d log P_cache / d score_i = p_i · (match_i / P_cache − 1)
        gradient = gradient.to(queries.dtype).unsqueeze(2)  # (B, T, 1)
        pull = gradient / chance.unsqueeze(2).clamp_min(torch.finfo(chance.dtype).tiny)
        pull = (pull - gradient).to(queries.dtype)
        for number, (row, time, span) in enumerate(ctx.places):
            softmax, match = kept[2 * number : 2 * number + 2]
            d_scores = torch.where(match, pull[row, time], -gradient[row, time]).mul_(softmax)
            torch.mm(d_scores, keys[row, span], out=d_queries[row, time])
            own = max(span.start, before)  # the past gets no gradient
            d_hidden[row, own - before : span.stop - before].addmm_(
                d_scores[:, own - span.start :].mT, queries[row, time]
            )
        return d_queries, d_hidden, None, None, None


def _blocks(queries: Tensor, keys: Tensor, size: int) -> Iterator[_Block]:
    """Walk over all sequences; leave out queries that have nothing to look at.

    Query t is activation number M + t, and looks at the n activations before that number.
    """
    batch, length, _ = queries.shape
    before = keys.shape[1] - length  # M
    exact = torch.promote_types(queries.dtype, torch.float32)
    for row in range(batch):
        for low in range(0 if before else 1, length, BLOCK):
            high = min(low + BLOCK, length)
            first, stop = max(0, before + low - size), before + high - 1
            scores = torch.mm(queries[row, low:high], keys[row, first:stop].mT)  # (R, S)
            _mask(scores, seen=before + low - first, size=size)
            softmax = torch.softmax(scores, dim=1, dtype=exact)
            yield _Block(row, slice(low, high), slice(first, stop), softmax)


def _mask(scores: Tensor, *, seen: int, size: int) -> None:
    """Forbid, in place, what lies outside the band: query i may look at i + seen − n to i + seen.

    Only the corners can: the newest activations for the first queries, which would be their own
    future, and the oldest ones for the last queries.
    """
    rows = len(scores)
    row = torch.arange(rows, device=scores.device).unsqueeze(1)
    future = scores[:, seen:]
    column = torch.arange(future.shape[1], device=scores.device)
    future.masked_fill_(column >= row, float("-inf"))
    old = scores[:, : max(0, rows - 1 + seen - size)]
    column = torch.arange(old.shape[1], device=scores.device)
    old.masked_fill_(column < row + seen - size, float("-inf"))
