"""The cache: the last N hidden states give probability to the words that followed them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact import CacheParameters
from micronet_lm.runtime.recollections import Recollections
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Recollected:
    """Recollections that are ready for sessions."""

    recollections: Recollections
    states: Floats
    """(M, D) the states as the cache would have them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Recalled:
    """Recollections with the ids of one session."""

    recollected: Recollected
    following: NDArray[np.int64]
    """(M) the word after each state."""
    words: NDArray[np.int64]
    """(W) the counted words."""

    def mixed(self, theta: float, hidden: Floats, logs: Floats) -> Floats:
        """Mix recollections into the log-probabilities of all words of a session (V + added)."""
        own = self.recollected.recollections
        state_share, word_share = own.shares()
        chances = np.zeros(len(logs))
        if len(self.following):
            visible = np.ones((1, len(self.following)), bool)
            votes = votes_of(hidden[None] * np.float32(theta), self.recollected.states, visible)[0]
            np.add.at(chances, self.following, state_share * votes)
        if own.counts:
            counts = np.array(own.counts, np.float64)
            chances[self.words] += word_share * counts / counts.sum()
        with np.errstate(divide="ignore"):
            recalled = np.log(chances)
        others = np.log1p(-(state_share + word_share))
        return np.asarray(np.logaddexp(logs + others, recalled), np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Unknown:
    """What is known of words outside the vocabulary."""

    token: int
    """The id of `<unk>`."""
    spelled: NDArray[np.float64]
    """(T) P_spelling of the words that are outside; 0 for all others."""


def mixed_log_probability(
    cache: CacheParameters,
    memory: Memory,
    hidden: Floats,
    words: NDArray[np.int64],
    log_softmax: Floats,
    unknown: "Unknown | None" = None,
) -> Floats:
    """Mix the cache into log P_softmax (T) of the words (T) that follow the states (T, D).

    Each word is in the cache for all tokens after it. A vote for <unk> is one for every word
    outside the vocabulary, by its spelling.
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
        faded = cache.faded(now - seen)
        votes = votes_of(queries, states[first : past + high - 1], visible, faded)
        chance = np.where(every[seen] == words[low:high, None], votes, 0).sum(axis=1)
        if unknown is not None:
            of_unknown = np.where(every[seen] == unknown.token, votes, 0).sum(axis=1)
            chance = chance + of_unknown * unknown.spelled[low:high]
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
    votes = votes_of_all(cache, memory, hidden)
    share = np.array(cache.share(len(memory.words)))
    result = log_softmax + np.float32(np.log1p(-share))
    words, place = np.unique(memory.words, return_inverse=True)
    chances = np.bincount(place, weights=votes).astype(np.float64)
    known = words < len(log_softmax)  # words of the session have no place here
    words = words[known]
    result[words] = _mix(share, log_softmax[words], chances[known])
    return result


def recalled_log_probabilities(
    cache: CacheParameters, memory: Memory, hidden: Floats, first: int, count: int
) -> Floats:
    """Return the cache's share of the words from id `first` on (count) after a hidden state (D)."""
    result = np.full(count, -np.inf, np.float32)
    later = memory.words >= first
    if later.any():
        votes = votes_of_all(cache, memory, hidden)
        sums = np.bincount(memory.words[later] - first, weights=votes[later], minlength=count)
        with np.errstate(divide="ignore"):
            result[:] = np.log(sums * cache.share(len(memory.words)))
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


def votes_of(
    queries: Floats, states: Floats, visible: NDArray[np.bool_], faded: Floats | None = None
) -> NDArray[np.float64]:
    """Return the softmax over the states that each query sees; 0 elsewhere.

    `faded` is what the similarities have lost with age.
    """
    similarities = queries @ states.T
    if faded is not None:
        similarities -= faded
    scores = np.where(visible, similarities, -np.inf)
    top = scores.max(axis=1, keepdims=True, initial=-1e30)
    powers = np.exp(scores - top, dtype=np.float64)
    total = powers.sum(axis=1, keepdims=True)
    return np.asarray(powers / np.where(total > 0, total, 1))


def votes_of_all(cache: CacheParameters, memory: Memory, hidden: Floats) -> NDArray[np.float64]:
    """Return the softmax over all states of the cache (M) for one hidden state (D)."""
    held = len(memory.words)
    visible, faded = np.ones((1, held), bool), cache.faded(np.arange(held, 0, -1)[None])
    votes = votes_of(hidden[None] * np.float32(cache.theta), memory.states, visible, faded)
    return np.asarray(votes[0])
