"""P_cache of the next word from the last n hidden states, without work outside that band.

P_cache is a softmax over the cache's entries: each votes for the word that followed it (section
3.5). A loss needs only the votes for one word per token, or for a few, so nothing here is as wide
as the vocabulary. Time is cut into blocks of R queries; a block sees R + n − 1 states, and the
two corners of its score matrix that lie outside the band are masked. Scores, softmax and
comparison of one block stay in the processor's cache.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

BLOCK = 128
"""Queries per block (R). A smaller block masks less, a larger one has more efficient products."""


def recall(queries: Tensor, hidden: Tensor, words: Tensor, past: Tensor, size: int) -> Tensor:
    """Return log P_cache of the true next word after each of T hidden states.

    Args:
        queries: (B, T, D): θ · hidden.
        hidden: (B, T, D) hidden states.
        words: (B, M + T): the word that followed each hidden state, the past ones first.
        past: (B, M, D) earlier hidden states; they get no gradient.
        size: number of hidden states that the cache holds (n).

    Returns:
        (B, T) in fp32 or wider; −∞ where the cache is empty or does not hold the word.

    """
    queries, hidden, past = _as_computed(queries, hidden, past)
    result: Tensor = _Recall.apply(queries, hidden, words, past, size)  # type: ignore[no-untyped-call]
    return result


def recall_several(
    queries: Tensor, hidden: Tensor, words: Tensor, asked: Tensor, past: Tensor, size: int
) -> Tensor:
    """Return log P_cache of K `asked` words per hidden state: (B, T, K).

    Everything else is as in `recall`; a word may occur several times.
    """
    queries, hidden, past = _as_computed(queries, hidden, past)
    result: Tensor = _RecallSeveral.apply(queries, hidden, words, asked, past, size)  # type: ignore[no-untyped-call]
    return result


@torch.no_grad()
def recalled_words(
    queries: Tensor, hidden: Tensor, words: Tensor, past: Tensor, size: int, vocabulary: int
) -> Tensor:
    """Return P_cache of all words: (B, T, V); zero where the cache is empty. See `recall`."""
    result = queries.new_zeros(*queries.shape[:2], vocabulary)
    for block in _blocks(queries, torch.cat([past, hidden], dim=1), size):
        votes = result[block.row, block.time]  # (R, V)
        votes.index_add_(1, words[block.row, block.span], block.softmax.to(votes.dtype))
    return result


class _Block(NamedTuple):
    """Some queries of one sequence, and the hidden states that they see."""

    row: int
    """Number of the sequence."""

    time: slice
    """Range of its T queries."""

    span: slice
    """Range of its M + T hidden states."""

    softmax: Tensor
    """(R, S) weight of each of these hidden states for each of these queries."""


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
        back = _Back(queries, keys)
        # d log P_cache / d score_i = p_i · (match_i / P_cache − 1)
        gradient = gradient.to(queries.dtype).unsqueeze(2)  # (B, T, 1)
        pull = gradient / chance.unsqueeze(2).clamp_min(torch.finfo(chance.dtype).tiny)
        pull = (pull - gradient).to(queries.dtype)
        for number, (row, time, span) in enumerate(ctx.places):
            softmax, match = kept[2 * number : 2 * number + 2]
            d_scores = torch.where(match, pull[row, time], -gradient[row, time]).mul_(softmax)
            back.add(row, time, span, d_scores)
        return back.d_queries, back.d_hidden, None, None, None


class _RecallSeveral(torch.autograd.Function):
    """The votes for the U distinct words of a sequence, of which each token picks K."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        hidden: Tensor,
        words: Tensor,
        asked: Tensor,
        past: Tensor,
        size: int,
    ) -> Tensor:
        keys = torch.cat([past, hidden], dim=1)  # (B, M + T, D)
        exact = torch.promote_types(hidden.dtype, torch.float32)
        chance = queries.new_zeros(asked.shape, dtype=exact)  # P_cache (B, T, K)
        names = [_Names.of(*both) for both in zip(words, asked, strict=True)]
        keep = any(ctx.needs_input_grad)
        ctx.places, ctx.names, kept = [], names, []
        for row, time, span, softmax in _blocks(queries, keys, size):
            voted = names[row].words[span].expand(len(softmax), -1)  # (R, S)
            votes = softmax.new_zeros(len(softmax), names[row].distinct + 1)  # (R, U + 1)
            votes.scatter_add_(1, voted, softmax)
            chance[row, time] = votes.gather(1, names[row].asked[time])
            if keep:
                ctx.places.append((row, time, span))
                kept.append(softmax.to(hidden.dtype))
        ctx.save_for_backward(queries, keys, chance, *kept)
        return chance.log()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        queries, keys, chance, *kept = ctx.saved_tensors
        back = _Back(queries, keys)
        # A word that is not in the cache has no gradient: its logarithm stays at −∞.
        gradient = gradient.masked_fill(chance == 0, 0)
        pull = gradient / chance.clamp_min(torch.finfo(chance.dtype).tiny)  # (B, T, K)
        total = gradient.sum(dim=2, keepdim=True)  # (B, T, 1)
        for (row, time, span), softmax in zip(ctx.places, kept, strict=True):
            names = ctx.names[row]
            d_votes = pull.new_zeros(len(softmax), names.distinct + 1)
            d_votes.scatter_add_(1, names.asked[time], pull[row, time])
            # Softmax backward: p · (dp − Σ p·dp), where Σ p·dp is the sum of all gradients.
            d_scores = d_votes.index_select(1, names.words[span]).sub_(total[row, time])
            d_scores = d_scores.mul_(softmax).to(queries.dtype)
            back.add(row, time, span, d_scores)
        return back.d_queries, back.d_hidden, None, None, None, None


class _Back:
    """Accumulator of the gradients of queries and hidden states, block by block."""

    def __init__(self, queries: Tensor, keys: Tensor) -> None:
        self._queries, self._keys = queries, keys
        self._before = keys.shape[1] - queries.shape[1]  # M
        self.d_queries, self.d_hidden = torch.zeros_like(queries), torch.zeros_like(queries)

    def add(self, row: int, time: slice, span: slice, d_scores: Tensor) -> None:
        """Add those of one block's scores (R, S); the past gets no gradient."""
        torch.mm(d_scores, self._keys[row, span], out=self.d_queries[row, time])
        own = max(span.start, self._before)
        self.d_hidden[row, own - self._before : span.stop - self._before].addmm_(
            d_scores[:, own - span.start :].mT, self._queries[row, time]
        )


class _Names(NamedTuple):
    """The words of one sequence as numbers below U, the number of distinct ones."""

    words: Tensor
    """(M + T) the word after each hidden state."""

    asked: Tensor
    """(T, K) the asked words; U for one that follows no hidden state."""

    distinct: int
    """U."""

    @classmethod
    def of(cls, words: Tensor, asked: Tensor) -> "_Names":
        distinct, number = torch.unique(words, return_inverse=True)
        place = torch.searchsorted(distinct, asked.contiguous()).clamp_(max=len(distinct) - 1)
        known = distinct[place] == asked
        return cls(number, place.masked_fill_(~known, len(distinct)), len(distinct))


def _as_computed(queries: Tensor, hidden: Tensor, past: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Convert hidden states to the type of the products."""
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        queries, hidden = queries.to(dtype), hidden.to(dtype)
    return queries, hidden, past.to(hidden.dtype)


def _blocks(queries: Tensor, keys: Tensor, size: int) -> Iterator[_Block]:
    """Yield the blocks of all sequences, without queries that see nothing.

    Query t is hidden state number M + t, and sees the n hidden states before it.
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
    """Mask, in place, scores outside the band: query i sees i + seen − n to i + seen.

    Only the corners are outside: the newest states for the first queries, which would be their
    own future, and the oldest ones for the last queries.
    """
    rows = len(scores)
    row = torch.arange(rows, device=scores.device).unsqueeze(1)
    future = scores[:, seen:]
    column = torch.arange(future.shape[1], device=scores.device)
    future.masked_fill_(column >= row, float("-inf"))
    old = scores[:, : max(0, rows - 1 + seen - size)]
    column = torch.arange(old.shape[1], device=scores.device)
    old.masked_fill_(column < row + seen - size, float("-inf"))
