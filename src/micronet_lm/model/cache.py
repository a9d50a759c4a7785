"""The differentiable non-parametric cache (section 3.5; Grave et al. 2017).

P(x_n) = (1 − λ) P_softmax(x_n) + λ P_cache(x_n), where P_cache is the softmax of θ·h_iᵀh_n over
the last n hidden states h_i of the same text, each voting for the word that followed it. θ and λ
are trained with the model: θ is the softplus and λ the sigmoid of a free parameter. At a text's
first token, P is P_softmax.

Beyond the paper, a cache may have a ramp r: while it holds only m < r hidden states, its share is
λ·m/r. A λ that is right for thousands of hidden states is far too large for the first few of a
short text. And its votes may fade: θ·h_iᵀh_n is lowered by a/f for a state that is a tokens old.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from micronet_lm.config import CacheConfig
from micronet_lm.model.recall import recall, recall_several, recalled_words


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The last hidden states of each text of a batch, at most as many as the cache holds."""

    states: Tensor
    """(B, M, D) hidden states, the newest last, detached from the graph."""

    words: Tensor
    """(B, M) the word that followed each of them."""


class Cache(nn.Module):
    """θ, λ and the size of a model's cache; its contents for a text are a `Memory`."""

    def __init__(self, config: CacheConfig) -> None:
        super().__init__()
        self.size = config.size  # may be changed after training
        self.given_ramp = config.ramp
        self.fade = config.fade  # both may be changed, too
        self.free_theta = nn.Parameter(torch.empty(()))
        self.free_lam = nn.Parameter(torch.empty(()))
        self.set(theta=config.theta, lam=config.lam)
        self.requires_grad_(config.trained)

    @property
    def ramp(self) -> int:
        """Number of hidden states from which the cache has its whole share; at most its size."""
        return min(self.given_ramp, self.size)

    @property
    def theta(self) -> Tensor:
        """Sharpness of the similarity."""
        return F.softplus(self.free_theta)

    @property
    def lam(self) -> Tensor:
        """Share of the cache in the prediction."""
        return torch.sigmoid(self.free_lam)

    def as_json(self) -> dict[str, float]:
        """Return plain values for a JSON object."""
        theta, lam = self.theta.item(), self.lam.item()
        return {"size": self.size, "ramp": self.ramp, "fade": self.fade, "theta": theta, "lam": lam}

    @torch.no_grad()
    def set(self, *, theta: float, lam: float) -> None:
        """Set the free parameters so that θ and λ have these values."""
        self.free_theta.fill_(theta + math.log(-math.expm1(-theta)))
        self.free_lam.fill_(math.log(lam) - math.log1p(-lam))

    def log_probability(
        self, log_softmax: Tensor, hidden: Tensor, words: Tensor, memory: Memory | None
    ) -> Tensor:
        """Mix the cache into log P_softmax (B, T) of the words (B, T) that follow `hidden`."""
        past = _or_nothing(memory, hidden)
        every = torch.cat([past.words, words], dim=1)
        queries = self.theta * hidden
        log_cache = recall(queries, hidden, every, past.states, self.size, self.fade)
        return self.mix(log_softmax, log_cache, past.words.shape[1])

    def log_probabilities(
        self,
        log_softmax: Tensor,
        hidden: Tensor,
        asked: Tensor,
        words: Tensor,
        memory: Memory | None,
    ) -> Tensor:
        """Mix the cache into log P_softmax (B, T, K) of the `asked` words (B, T, K).

        `words` (B, T) are the true words after `hidden` (B, T, D).
        """
        log_cache = self.recalled(hidden, asked, words, memory)
        return self.mix(log_softmax, log_cache, _or_nothing(memory, hidden).words.shape[1])

    def recalled(
        self, hidden: Tensor, asked: Tensor, words: Tensor, memory: Memory | None
    ) -> Tensor:
        """Return log P_cache (B, T, K) of the `asked` words, not yet mixed."""
        past = _or_nothing(memory, hidden)
        every = torch.cat([past.words, words], dim=1)
        queries = self.theta * hidden
        return recall_several(queries, hidden, every, asked, past.states, self.size, self.fade)

    def log_distribution(
        self, log_softmax: Tensor, hidden: Tensor, words: Tensor, memory: Memory | None
    ) -> Tensor:
        """Mix the cache into log P_softmax (B, T, V) of all words.

        `words` (B, T) are the true words after `hidden` (B, T, D), each in the cache afterwards.
        """
        past = _or_nothing(memory, hidden)
        every = torch.cat([past.words, words], dim=1)
        size = log_softmax.shape[-1]
        queries = self.theta * hidden
        cache = recalled_words(queries, hidden, every, past.states, self.size, size, self.fade)
        # The cache holds hundreds of the many thousand words: only these are mixed.
        known = every.unique()  # (U)
        held = past.words.shape[1]
        mixed = self.mix(log_softmax[..., known], cache[..., known].log(), held)
        log_kept, _ = self._log_shares(log_softmax, held)
        mixed = (log_softmax + log_kept).index_copy(-1, known, mixed)
        return mixed if held else _unmixed_first(log_softmax, mixed)

    def remember(self, memory: Memory | None, hidden: Tensor, words: Tensor) -> Memory:
        """Return the memory after `words` (B, T) followed `hidden`."""
        past = _or_nothing(memory, hidden)
        states = torch.cat([past.states, hidden.detach()[:, -self.size :]], dim=1)
        every = torch.cat([past.words, words[:, -self.size :]], dim=1)
        return Memory(states=states[:, -self.size :], words=every[:, -self.size :])

    def mix(self, log_softmax: Tensor, log_cache: Tensor, held: int) -> Tensor:
        """Return log((1 − λ) P_softmax + λ P_cache), but log P_softmax for a text's first token.

        `held` hidden states were in the cache before the first of these tokens.
        """
        log_kept, log_share = self._log_shares(log_softmax, held)
        mixed = torch.logaddexp(log_softmax + log_kept, log_cache + log_share)
        return mixed if held else _unmixed_first(log_softmax, mixed)

    def _log_shares(self, like: Tensor, held: int) -> tuple[Tensor, Tensor]:
        """Return log(1 − λ) and log λ, for each of the tokens (B, T, …) on the ramp."""
        if held >= self.ramp:
            return F.logsigmoid(-self.free_lam), F.logsigmoid(self.free_lam)
        tokens = torch.arange(held, held + like.shape[1], device=like.device)
        # The very first token is not mixed; 1 keeps its logarithm, and the gradient, finite.
        part = tokens.clamp(min=1, max=self.ramp).to(like.dtype) / self.ramp
        part = part.view(1, -1, *[1] * (like.dim() - 2))  # (1, T, …)
        return torch.log1p(-self.lam * part), F.logsigmoid(self.free_lam) + part.log()


def _or_nothing(memory: Memory | None, hidden: Tensor) -> Memory:
    """Return the memory, or an empty one at the beginning of a text."""
    if memory is not None:
        return memory
    batch, _, width = hidden.shape
    words = torch.empty(batch, 0, dtype=torch.long, device=hidden.device)
    return Memory(states=hidden.detach().new_empty(batch, 0, width), words=words)


def _unmixed_first(log_softmax: Tensor, mixed: Tensor) -> Tensor:
    """Use P_softmax for the first token of a text, whose cache is empty."""
    return torch.cat([log_softmax[:, :1], mixed[:, 1:]], dim=1)
