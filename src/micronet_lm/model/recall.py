"""P_cache of the next word from the last n hidden states, without work outside that band.

P_cache is a softmax over the cache's entries: each votes for the word that followed it (section
3.5). A loss needs only the votes for one word per token, or for a few, so nothing here is as wide
as the vocabulary. Time is cut into blocks of R queries; a block sees R + n − 1 states, and the
two corners of its score matrix that lie outside the band are masked. On a processor, scores,
softmax and comparison of one block stay in its cache; on a GPU a block is of many sequences.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from micronet_lm.model.sizes import sizes_for


def recall(
    queries: Tensor, hidden: Tensor, words: Tensor, past: Tensor, size: int, fade: int = 0
) -> Tensor:
    """Return log P_cache of the true next word after each of T hidden states.

    Args:
        queries: (B, T, D): θ · hidden.
        hidden: (B, T, D) hidden states.
        words: (B, M + T): the word that followed each hidden state, the past ones first.
        past: (B, M, D) earlier hidden states; they get no gradient.
        size: number of hidden states that the cache holds (n).
        fade: number of tokens in which a vote shrinks to 1/e; 0 if it does not.

    Returns:
        (B, T) in fp32 or wider; −∞ where the cache is empty or does not hold the word.

    """
    queries, hidden, past = _as_computed(queries, hidden, past)
    result: Tensor = _Recall.apply(  # type: ignore[no-untyped-call]
        queries, hidden, words, past, size, fade
    )
    return result


def recall_several(
    queries: Tensor,
    hidden: Tensor,
    words: Tensor,
    asked: Tensor,
    past: Tensor,
    size: int,
    fade: int = 0,
) -> Tensor:
    """Return log P_cache of K `asked` words per hidden state: (B, T, K).

    Everything else is as in `recall`; a word may occur several times.
    """
    queries, hidden, past = _as_computed(queries, hidden, past)
    result: Tensor = _RecallSeveral.apply(  # type: ignore[no-untyped-call]
        queries, hidden, words, asked, past, size, fade
    )
    return result


@torch.no_grad()
def recalled_words(
    queries: Tensor,
    hidden: Tensor,
    words: Tensor,
    past: Tensor,
    size: int,
    vocabulary: int,
    fade: int = 0,
) -> Tensor:
    """Return P_cache of all words: (B, T, V); zero where the cache is empty. See `recall`."""
    result = queries.new_zeros(*queries.shape[:2], vocabulary)
    for block in _blocks(queries, torch.cat([past, hidden], dim=1), size, fade):
        votes = block.softmax.to(result.dtype)
        for number, row in enumerate(range(*block.rows.indices(len(result)))):
            result[row, block.time].index_add_(1, words[row, block.span], votes[number])  # (R, V)
    return result


class _Block(NamedTuple):
    """Some queries of some sequences (b), and the hidden states that they see."""

    rows: slice
    """Range of the sequences."""

    time: slice
    """Range of their T queries."""

    span: slice
    """Range of their M + T hidden states."""

    softmax: Tensor
    """(b, R, S) weight of each of these hidden states for each of these queries."""


class _Recall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, hidden: Tensor, words: Tensor, past: Tensor, size: int, fade: int
    ) -> Tensor:
        keys = torch.cat([past, hidden], dim=1)  # (B, M + T, D)
        words = words.int()
        targets = words[:, past.shape[1] :]
        exact = torch.promote_types(hidden.dtype, torch.float32)
        chance = queries.new_zeros(targets.shape, dtype=exact)  # P_cache (B, T)
        keep = any(ctx.needs_input_grad)
        ctx.places, kept = [], []
        for rows, time, span, softmax in _blocks(queries, keys, size, fade):
            match = words[rows, None, span] == targets[rows, time].unsqueeze(2)  # (b, R, S)
            chance[rows, time] = (softmax * match).sum(dim=2)
            if keep:
                ctx.places.append((rows, time, span))
                kept += [softmax.to(hidden.dtype), match]
        ctx.save_for_backward(queries, keys, chance, *kept)
        return chance.log()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        queries, keys, chance, *kept = ctx.saved_tensors
        back = _Back(queries, keys)
        # d log P_cache / d score_i = p_i · (match_i / P_cache − 1)
        # The division leaves fp16's range, small or large, until p_i is multiplied.
        kind = chance.dtype if queries.dtype == torch.float16 else queries.dtype
        gradient = gradient.to(kind).unsqueeze(2)  # (B, T, 1)
        pull = gradient / chance.unsqueeze(2).clamp_min(torch.finfo(chance.dtype).tiny)
        pull = (pull - gradient).to(kind)
        for number, (rows, time, span) in enumerate(ctx.places):
            softmax, match = kept[2 * number : 2 * number + 2]
            d_scores = torch.where(match, pull[rows, time], -gradient[rows, time]).mul_(softmax)
            back.add(rows, time, span, d_scores.to(queries.dtype))
        return back.d_queries, back.d_hidden, None, None, None, None


class _RecallSeveral(torch.autograd.Function):
    """The votes for the U distinct words of some sequences, of which each token picks K."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        hidden: Tensor,
        words: Tensor,
        asked: Tensor,
        past: Tensor,
        size: int,
        fade: int,
    ) -> Tensor:
        keys = torch.cat([past, hidden], dim=1)  # (B, M + T, D)
        exact = torch.promote_types(hidden.dtype, torch.float32)
        chance = queries.new_zeros(asked.shape, dtype=exact)  # P_cache (B, T, K)
        keep = any(ctx.needs_input_grad)
        ctx.places, ctx.names, kept = [], {}, []
        for rows, time, span, softmax in _blocks(queries, keys, size, fade, several=True):
            if rows.start not in ctx.names:
                ctx.names[rows.start] = _Names.of(words[rows], asked[rows])
            names = ctx.names[rows.start]
            voted = names.words[:, None, span].expand(softmax.shape)  # (b, R, S)
            votes = softmax.new_zeros(*softmax.shape[:2], names.distinct + 1)  # (b, R, U + 1)
            votes.scatter_add_(2, voted, softmax)
            chance[rows, time] = votes.gather(2, names.asked[:, time])
            if keep:
                ctx.places.append((rows, time, span))
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
        for (rows, time, span), softmax in zip(ctx.places, kept, strict=True):
            names = ctx.names[rows.start]
            d_votes = pull.new_zeros(*softmax.shape[:2], names.distinct + 1)
            d_votes.scatter_add_(2, names.asked[:, time], pull[rows, time])
            # Softmax backward: p · (dp − Σ p·dp), where Σ p·dp is the sum of all gradients.
            d_scores = names.of_words(d_votes, span).sub_(total[rows, time])
            d_scores = d_scores.mul_(softmax).to(queries.dtype)
            back.add(rows, time, span, d_scores)
        return back.d_queries, back.d_hidden, None, None, None, None, None


class _Back:
    """Accumulator of the gradients of queries and hidden states, block by block."""

    def __init__(self, queries: Tensor, keys: Tensor) -> None:
        self._queries, self._keys = queries, keys
        self._before = keys.shape[1] - queries.shape[1]  # M
        self.d_queries, self.d_hidden = torch.zeros_like(queries), torch.zeros_like(queries)

    def add(self, rows: slice, time: slice, span: slice, d_scores: Tensor) -> None:
        """Add those of one block's scores (b, R, S); the past gets no gradient."""
        own = max(span.start, self._before)
        held = slice(own - self._before, span.stop - self._before)
        d_own = d_scores[:, :, own - span.start :].mT
        if len(d_scores) > 1:
            torch.bmm(d_scores, self._keys[rows, span], out=self.d_queries[rows, time])
            self.d_hidden[rows, held].baddbmm_(d_own, self._queries[rows, time])
            return
        row = rows.start  # one sequence: the product of matrices is faster on a processor
        torch.mm(d_scores[0], self._keys[row, span], out=self.d_queries[row, time])
        self.d_hidden[row, held].addmm_(d_own[0], self._queries[row, time])


class _Names(NamedTuple):
    """The words of some sequences as numbers below U, the number of distinct ones."""

    words: Tensor
    """(b, M + T) the word after each hidden state."""

    asked: Tensor
    """(b, T, K) the asked words; U for one that follows no hidden state."""

    distinct: int
    """U."""

    @classmethod
    def of(cls, words: Tensor, asked: Tensor) -> "_Names":
        distinct, number = torch.unique(words, return_inverse=True)
        place = torch.searchsorted(distinct, asked.contiguous()).clamp_(max=len(distinct) - 1)
        known = distinct[place] == asked
        return cls(number, place.masked_fill_(~known, len(distinct)), len(distinct))

    def of_words(self, votes: Tensor, span: slice) -> Tensor:
        """Return what the word after each hidden state of a span has of (b, R, U + 1) votes."""
        words = self.words[:, span]
        if len(words) == 1:
            return votes[0].index_select(1, words[0]).unsqueeze(0)
        return votes.gather(2, words[:, None].expand(-1, votes.shape[1], -1))


def _as_computed(queries: Tensor, hidden: Tensor, past: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Convert hidden states to the type of the products."""
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        queries, hidden = queries.to(dtype), hidden.to(dtype)
    return queries, hidden, past.to(hidden.dtype)


def _blocks(
    queries: Tensor, keys: Tensor, size: int, fade: int, *, several: bool = False
) -> Iterator[_Block]:
    """Yield the blocks of all sequences, without queries that see nothing.

    Query t is hidden state number M + t, and sees the n hidden states before it. `several` leaves
    room for votes, of which a block may have one for each word of each of its sequences.
    """
    batch, length, _ = queries.shape
    before = keys.shape[1] - length  # M
    exact = torch.promote_types(queries.dtype, torch.float32)
    sizes = sizes_for(queries.device)
    most = sizes.recalled // max(1, 4 * min(sizes.recalled_queries, length) * keys.shape[1])
    together = min(batch, max(1, math.isqrt(most) if several else most))  # b
    for row in range(0, batch, together):
        rows = slice(row, min(row + together, batch))
        for low in range(0 if before else 1, length, sizes.recalled_queries):
            high = min(low + sizes.recalled_queries, length)
            first, stop = max(0, before + low - size), before + high - 1
            if together == 1:
                scores = torch.mm(queries[row, low:high], keys[row, first:stop].mT).unsqueeze(0)
            else:
                scores = torch.bmm(queries[rows, low:high], keys[rows, first:stop].mT)  # (b, R, S)
            if fade:
                scores = _faded(scores, seen=before + low - first, fade=fade)
            _mask(scores, seen=before + low - first, size=size)
            softmax = torch.softmax(scores, dim=2, dtype=exact)
            yield _Block(rows, slice(low, high), slice(first, stop), softmax)


def _faded(scores: Tensor, *, seen: int, fade: int) -> Tensor:
    """Return scores that are lowered by age / fade: query i is of the state in column i + seen."""
    row = torch.arange(scores.shape[1], device=scores.device).unsqueeze(1)
    age = row + seen - torch.arange(scores.shape[2], device=scores.device)  # (R, S)
    exact = torch.promote_types(scores.dtype, torch.float32)
    return scores.to(exact) - (age.double() * (1.0 / fade)).to(exact)


def _mask(scores: Tensor, *, seen: int, size: int) -> None:
    """Mask, in place, scores outside the band: query i sees i + seen − n to i + seen.

    Only the corners are outside: the newest states for the first queries, which would be their
    own future, and the oldest ones for the last queries.
    """
    rows = scores.shape[1]
    row = torch.arange(rows, device=scores.device).unsqueeze(1)
    future = scores[:, :, seen:]
    column = torch.arange(future.shape[2], device=scores.device)
    future.masked_fill_(column >= row, float("-inf"))
    old = scores[:, :, : max(0, rows - 1 + seen - size)]
    column = torch.arange(old.shape[2], device=scores.device)
    old.masked_fill_(column < row + seen - size, float("-inf"))
