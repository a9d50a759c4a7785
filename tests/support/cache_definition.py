"""The cache by its definition, word by word, and texts to compare it on."""

import math

import torch
from torch import Tensor

from micronet_lm.config import CacheConfig
from micronet_lm.model import Cache

VOCABULARY = 13


def direct(
    theta: float, lam: float, size: int, states: Tensor, words: Tensor, fade: int = 0
) -> Tensor:
    """Return P_cache of all words for every token of a text, by the definition: (T, V)."""
    chances = torch.zeros(len(states), VOCABULARY, dtype=states.dtype)
    for n in range(len(states)):
        entries = range(max(0, n - size), n)
        weights = [math.exp(theta * float(states[i] @ states[n])) for i in entries]
        if fade:
            weights = [w * math.exp(-(n - i) / fade) for i, w in zip(entries, weights, strict=True)]
        for i, weight in zip(entries, weights, strict=True):
            chances[n, words[i]] += weight / sum(weights)
    return chances


def text(length: int, seed: int = 0, batch: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Return activations, following words, and a P_softmax of a batch of texts."""
    torch.manual_seed(seed)
    hidden = torch.randn(batch, length, 6, dtype=torch.float64)
    words = torch.randint(VOCABULARY, (batch, length))
    softmax = torch.randn(batch, length, VOCABULARY, dtype=torch.float64).log_softmax(dim=-1)
    return hidden, words, softmax


def cache(size: int, theta: float = 0.4, lam: float = 0.3, ramp: int = 0, fade: int = 0) -> Cache:
    config = CacheConfig(size=size, theta=theta, lam=lam, ramp=ramp, fade=fade)
    return Cache(config).double()
