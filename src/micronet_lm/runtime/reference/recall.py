"""The cache: the last N hidden states give probability to the words that followed them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact import CacheParameters
from micronet_lm.runtime.reference.arithmetic import Floats

BLOCK = 128
"""Number of queries compared with the cache at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Memory:
    """The cache's contents for a text, newest last; never changed in place, only replaced."""

    states: Floats
    """(M, D) hidden states, at most N."""
    words: NDArray[np.int64]
    """(M) the word that followed each of them."""

    @classmethod
    def empty(cls, width: int) -> "Memory":
        """Return the memory at the beginning of a text."""
        return cls(states=np.empty((0, width), np.float32), words=np.empty(0, np.int64))

    def after(self, states: Floats, words: NDArray[np.int64], size: int) -> "Memory":
        """Return the memory after `words` followed `states`."""
        return Memory(
            states=np.concatenate([self.states, states[-size:]])[-size:],
            words=np.concatenate([self.words, words[-size:]])[-size:],
        )


def mixed_log_probability(
    cache: CacheParameters,
    memory: Memory,
    hidden: Floats,
    words: NDArray[np.int64],
    log_softmax: Floats,
) -> Floats:
    """Mix the cache into log P_softmax (T) of the words (T) that follow the states (T, D).

    Each word is in the cache for all tokens after it.
    """
    past, size = len(memory.words), cache.size
    states = np.concatenate([memory.states, hidden])
    every = np.concatenate([memory.words, words])
    result = log_softmax.copy()
    for low in range(0, len(words), BLOCK):
        high = min(low + BLOCK, len(words))
        first = max(0, past + low - size)
        seen = np.arange(first, past + high - 1)  # positions that any query of the block sees
        now = np.arange(past + low, past + high)[:, None]  # each query's own position
        visible = (seen < now) & (seen >= now - size)
        queries = hidden[low:high] * np.float32(cache.theta)
        votes = _votes(queries, states[first : past + high - 1], visible)
        chance = np.where(every[seen] == words[low:high, None], votes, 0).sum(axis=1)
        held = visible.sum(axis=1)
        some = held > 0  # the cache is empty at the text's first token
        shares = np.array([cache.share(n) for n in held[some]])
        result[low:high][some] = _mix(shares, log_softmax[low:high][some], chance[some])
    return result


def mixed_log_distribution(
    cache: CacheParameters, memory: Memory, hidden: Floats, log_softmax: Floats
) -> Floats:
    """Mix the cache into log P_softmax (V) of all words after one hidden state (D)."""
    if not len(memory.words):
        return log_softmax
    visible = np.ones((1, len(memory.words)), bool)
    votes = _votes(hidden[None] * np.float32(cache.theta), memory.states, visible)[0]
    share = np.array(cache.share(len(memory.words)))
    result = log_softmax + np.float32(np.log1p(-share))
    words, place = np.unique(memory.words, return_inverse=True)
    result[words] = _mix(
        share, log_softmax[words], np.bincount(place, weights=votes).astype(np.float64)
    )
    return result


def _mix(
    share: NDArray[np.float64], log_softmax: Floats, chance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return log((1 − λ) P_softmax + λ P_cache), also where one of them underflows."""
    recalled = np.full(chance.shape, -np.inf)
    np.log(chance, out=recalled, where=chance > 0)
    mixed: NDArray[np.float64] = np.logaddexp(
        log_softmax + np.log1p(-share), recalled + np.log(share)
    )
    return mixed


def _votes(queries: Floats, states: Floats, visible: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the softmax over the states that each query sees; 0 elsewhere."""
    scores = np.where(visible, queries @ states.T, -np.inf)
    top = scores.max(axis=1, keepdims=True, initial=-1e30)
    powers = np.exp(scores - top, dtype=np.float64)
    total = powers.sum(axis=1, keepdims=True)
    return np.asarray(powers / np.where(total > 0, total, 1))
