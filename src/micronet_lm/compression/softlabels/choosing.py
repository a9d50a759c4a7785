"""Choose the words of the teacher's distribution that become labels.

`top_k` is the paper's choice (section 4.1): the largest probabilities, unchanged. The rest is
missing from the loss, so the student learns a distribution that is too sharp.

`sampled` is the unbiased alternative of *Sparse Logit Sampling* (arXiv 2503.16870): K words are
drawn from the teacher's distribution, each with weight 1/K, so that every word's expected weight is
its probability. Here the draws of a token are K evenly spaced points on the cumulative distribution
with one random shift: a word of probability p is drawn ⌊Kp⌋ or ⌈Kp⌉ times. Expectations are those
of independent draws, the noise is smaller. Equal weights need no space on disk.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Chosen(NamedTuple):
    """The labels of N tokens."""

    words: Tensor
    """(N, K) ids."""

    probabilities: Tensor
    """(N, K) the teacher's probabilities of these words."""


def top_k(distribution: Tensor, count: int) -> Chosen:
    """Return the likeliest words of probabilities (N, V), the likeliest first."""
    values, words = distribution.topk(count, dim=1)
    return Chosen(words, values)


def sampled(distribution: Tensor, count: int, shifts: Tensor) -> Chosen:
    """Draw words from probabilities (N, V), with one random number in [0, 1) per token: (N)."""
    # fp32 would lose the rare words' probabilities in a running sum near 1; and only the CPU sums
    # in the same order every time.
    running = distribution.cpu().cumsum(dim=1, dtype=torch.float64)
    place = torch.arange(count, dtype=torch.float64)
    points = (place + shifts.cpu().unsqueeze(1)) / count * running[:, -1:]  # (N, K)
    words = torch.searchsorted(running, points, right=True).clamp_(max=distribution.shape[1] - 1)
    words = words.to(distribution.device)
    return Chosen(words, distribution.gather(1, words))


def covered(chosen: Chosen) -> Tensor:
    """Return the sum of the distinct labels' probabilities per token: (N, K) → (N)."""
    words, order = chosen.words.sort(dim=1)
    again = torch.zeros_like(words, dtype=torch.bool)
    again[:, 1:] = words[:, 1:] == words[:, :-1]
    return chosen.probabilities.gather(1, order).masked_fill(again, 0).sum(dim=1)
