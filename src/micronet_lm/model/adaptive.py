"""Adaptive embedding and adaptive softmax with tied tables (section 3.3; Baevski & Auli 2018).

Words are sorted by frequency and cut into bins. Bins of rarer words have narrower tables; a
projection maps a table to the model's width and, for the softmax, a second one maps hidden states
to the table's width. The first bin also has one entry for each other bin, so that the
probability of a word in bin i > 0 is that of its bin times that of the word within the bin.
No cutoffs make one bin: a full embedding and a full softmax.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from micronet_lm.config import ModelConfig, Place
from micronet_lm.model.arithmetic import PLAIN, Arithmetic
from micronet_lm.model.log_softmax import linear_log_softmax
from micronet_lm.model.logsumexp import linear_logsumexp


class AdaptiveEmbedding(nn.Module):
    """Map from word ids to vectors of the model's width."""

    arithmetic: Arithmetic = PLAIN

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.bounds = config.bounds
        self.width = config.width
        self.tables = nn.ParameterList(
            torch.empty(high - low, width)  # (V, E)
            for (low, high), width in zip(
                pairwise(self.bounds), config.embedding_widths, strict=True
            )
        )
        self.projections = nn.ModuleList(
            _projection(e, self.width) for e in config.embedding_widths
        )

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids (B, T) to (B, T, D)."""
        weight, linear = self.arithmetic.weight, self.arithmetic.linear
        if len(self.tables) == 1:
            return linear(self.projections[0], F.embedding(ids, weight(self.tables[0])))
        flat = ids.flatten()
        places, vectors = [], []
        for low, inside, table, projection in zip(
            self.bounds, members(flat, self.bounds), self.tables, self.projections, strict=False
        ):
            place = torch.nonzero(inside).squeeze(1)
            places.append(place)
            vectors.append(linear(projection, F.embedding(flat[place] - low, weight(table))))
        sorted_ = torch.cat(vectors)  # by bins
        mixed = torch.empty_like(sorted_).index_copy(0, torch.cat(places), sorted_)
        return mixed.view(*ids.shape, self.width)


class AdaptiveSoftmax(nn.Module):
    """Map from hidden states to probabilities of words; the tables are the embedding's."""

    arithmetic: Arithmetic = PLAIN

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.bounds = config.bounds
        first, tails = config.embedding_widths[0], len(config.cutoffs)
        self.projections = nn.ModuleList(
            _projection(config.width, e) for e in config.embedding_widths
        )
        self.biases = nn.ParameterList(
            torch.empty(high - low) for low, high in pairwise(self.bounds)
        )
        self.tail_weight = nn.Parameter(torch.empty(tails, first))  # (bins − 1, E)
        self.tail_bias = nn.Parameter(torch.empty(tails))

    @torch.no_grad()
    def start_from_frequencies(self, counts: Sequence[int]) -> None:
        """Set the biases so that, without any weights, every word has its share of `counts`.

        Adam moves a bias by about the learning rate per step: from zero, the biases of rare words
        would need most of a short run to reach the values that counting gives at once.
        """
        count = torch.tensor(counts, dtype=torch.float64) + 1  # words that were never seen
        mass = torch.stack([count[low:high].sum() for low, high in pairwise(self.bounds)])
        for number, (low, high) in enumerate(pairwise(self.bounds)):
            whole = mass.sum() if number == 0 else mass[number]
            self.biases[number].copy_((count[low:high] / whole).log())
        self.tail_bias.copy_((mass[1:] / mass.sum()).log())

    def log_probability(self, hidden: Tensor, words: Tensor, tables: Sequence[Tensor]) -> Tensor:
        """Return the log-probability of one word per hidden state: (N, D), (N) → (N) in fp32.

        A tail is computed only for the words in it.
        """
        first, weight, bias = self._first_bin(hidden, tables)
        entry = self._entries(words)
        result = _logit(first, entry, weight, bias) - linear_logsumexp(first, weight, bias)
        for tail, inside in enumerate(members(words, self.bounds[1:]), start=1):
            low, place = self.bounds[tail], torch.nonzero(inside).squeeze(1)
            # A bin without words is computed too, on no rows: so all weights always have gradients,
            # and the optimizer's steps do not depend on how processes share a batch.
            x = self._projected(tail, hidden.index_select(0, place))
            table, bias, word = tables[tail], self._bias(tail), words[place] - low
            within = _logit(x, word, table, bias) - linear_logsumexp(x, table, bias)
            result = result.index_add(0, place, within)
        return result

    def log_probabilities(self, hidden: Tensor, words: Tensor, tables: Sequence[Tensor]) -> Tensor:
        """Return log-probabilities of K words per state: (N, D), (N, K) → (N, K) in fp32.

        A bin's sum is computed once per token, and a tail's only for tokens with a word in it.
        """
        first, weight, bias = self._first_bin(hidden, tables)
        result = linear_log_softmax(first, weight, bias, self._entries(words)).flatten()
        for tail, (low, high) in enumerate(pairwise(self.bounds[1:]), start=1):
            inside = (words >= low) & (words < high)  # (N, K)
            needed = inside.any(dim=1)
            x = self._projected(tail, hidden.index_select(0, torch.nonzero(needed).squeeze(1)))
            table, bias = tables[tail], self._bias(tail)
            total = linear_logsumexp(x, table, bias)  # of the tokens that need the bin
            place = torch.nonzero(inside.flatten()).squeeze(1)  # the words that lie in it
            token = (needed.cumsum(0) - 1)[place // words.shape[1]]
            word = words.flatten()[place] - low
            within = _logit(x.index_select(0, token), word, table, bias) - total[token]
            result = result.index_add(0, place, within)
        return result.view(words.shape)

    def log_distribution(self, hidden: Tensor, tables: Sequence[Tensor]) -> Tensor:
        """Return the log-probabilities of all words: (N, D) → (N, V)."""
        first, weight, bias = self._first_bin(hidden, tables)
        head = F.log_softmax(F.linear(first, weight, bias), dim=-1)
        cut = self.bounds[1]
        parts = [head[:, :cut]]
        for tail, table in enumerate(tables[1:]):
            x = self._projected(tail + 1, hidden)
            within = F.log_softmax(F.linear(x, table, self._bias(tail + 1)), dim=-1)
            parts.append(within + head[:, cut + tail : cut + tail + 1])
        return torch.cat(parts, dim=1)

    def _entries(self, words: Tensor) -> Tensor:
        """Return the words' entries in the first bin: for a word of a tail, that of its bin."""
        if len(self.bounds) == 2:
            return words
        entry = words.clamp(max=self.bounds[1])
        for low in self.bounds[2:-1]:
            entry += words >= low
        return entry

    def _first_bin(self, hidden: Tensor, tables: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return states, weights and biases of the first bin, its tail entries included."""
        own = self.arithmetic.weight
        weight = torch.cat([tables[0], own(self.tail_weight)])
        bias = torch.cat([self._bias(0), own(self.tail_bias)])
        return self._projected(0, hidden), weight, bias

    def _bias(self, number: int) -> Tensor:
        return self.arithmetic.weight(self.biases[number])

    def _projected(self, number: int, hidden: Tensor) -> Tensor:
        """Return hidden states (N, D) in the width of a bin's table (N, E)."""
        projection = self.projections[number]
        if isinstance(projection, nn.Identity):
            return hidden
        x = self.arithmetic.linear(projection, hidden)
        before = sum(isinstance(p, nn.Linear) for p in self.projections[:number])
        return self.arithmetic.activation(Place.PROJECTED, before, x)


def members(words: Tensor, bounds: Sequence[int]) -> list[Tensor]:
    """Return for each bin which words lie in it; no word may lie above the last one."""
    above = [words >= low for low in bounds[:-1]]
    return [*(own > next_ for own, next_ in pairwise(above)), *above[-1:]]


def _projection(source: int, target: int) -> nn.Module:
    """Return a linear map without bias, or the identity when the widths agree."""
    return nn.Identity() if source == target else nn.Linear(source, target, bias=False)


def _logit(x: Tensor, words: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return weight_w · x + bias_w for one word w per row: (N, E), (N) → (N)."""
    rows = F.embedding(words, weight)  # (N, E)
    return (x.to(rows.dtype) * rows).sum(dim=-1) + bias[words]
