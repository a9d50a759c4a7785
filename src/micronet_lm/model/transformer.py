"""The paper's transformer: short joint contexts, one relative-position table a layer."""

import torch
from torch import Tensor, nn

from micronet_lm.config import CacheConfig, ModelConfig
from micronet_lm.model.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from micronet_lm.model.cache import Cache, Memory
from micronet_lm.model.initialization import initialize
from micronet_lm.model.state import StreamState
from micronet_lm.model.windowed_attention import windowed_attention


class Attention(nn.Module):
    """Causal attention to the last C tokens, with trained scores for relative positions."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.key_width, self.value_width = (
            config.heads,
            config.key_width,
            config.value_width,
        )
        self.context = config.context
        inner = config.heads * (2 * config.key_width + config.value_width)
        self.qkv = nn.Linear(config.width, inner)
        self.output = nn.Linear(config.heads * config.value_width, config.width, bias=False)
        self.positions = nn.Parameter(torch.empty(config.key_width, config.context))  # (K, C)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, seen: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Attend from x (B, T, D), given the P keys and values before it.

        Returns the output (B, T, D) and the last P keys and values for the chunk after this one.
        """
        batch, time, _ = x.shape
        before = self.context - 1  # P
        wide = self.heads * self.key_width
        q, k, v = self.qkv(x).split([wide, wide, self.heads * self.value_width], dim=-1)
        q = (q * self.key_width**-0.5).view(batch, time, self.heads, self.key_width)
        k = k.view(batch, time, self.heads, self.key_width)
        v = v.view(batch, time, self.heads, self.value_width)
        k = torch.cat([keys.to(k.dtype), k], dim=1)  # (B, P + T, H, K)
        v = torch.cat([values.to(v.dtype), v], dim=1)
        mixed = windowed_attention(q, k, v, self.positions, before - seen)  # (B, T, H, d_v)
        return self.output(mixed.flatten(2)), k[:, time:], v[:, time:]


class Block(nn.Module):
    """LayerNorm, attention, residual; LayerNorm, feed-forward, residual."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.ffn_norm = nn.LayerNorm(config.width)
        self.inner = nn.Linear(config.width, config.ffn_width)
        self.outer = nn.Linear(config.ffn_width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, seen: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Map (B, T, D) to (B, T, D), with the keys and values for the next chunk."""
        mixed, keys, values = self.attention(self.attention_norm(x), keys, values, seen)
        x = x + self.dropout(mixed)
        x = x + self.dropout(self.outer(self.inner(self.ffn_norm(x)).relu()))
        return x, keys, values


class LanguageModel(nn.Module):
    """Word ids to hidden states, and hidden states to probabilities of the next word."""

    def __init__(self, config: ModelConfig, cache: CacheConfig | None = None) -> None:
        super().__init__()
        self.config = config
        self.embedding = AdaptiveEmbedding(config)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.softmax = AdaptiveSoftmax(config)
        initialize(self)
        self.cache = Cache(cache) if cache else None

    def forward(self, ids: Tensor, state: StreamState | None = None) -> tuple[Tensor, StreamState]:
        """Compute hidden states (B, T, D) of ids (B, T) that follow `state`.

        Without a state the text begins here. The returned state is what the next chunk needs.
        """
        if state is None:
            state = StreamState.empty(self.config, len(ids), ids.device)
        x = self.dropout(self.embedding(ids))
        keys, values = [], []
        for block, key, value in zip(self.blocks, state.keys, state.values, strict=True):
            x, key, value = block(x, key, value, state.seen)
            keys.append(key)
            values.append(value)
        seen = min(state.seen + ids.shape[1], self.config.context - 1)
        return x, StreamState(keys=tuple(keys), values=tuple(values), seen=seen)

    def log_probability(
        self, hidden: Tensor, words: Tensor, memory: Memory | None = None
    ) -> Tensor:
        """Log-probability of the word after each hidden state: (B, T, D), (B, T) → (B, T).

        With a cache, `memory` is what it holds before the first of these tokens; without a memory
        the text begins here.
        """
        flat = self.softmax.log_probability(hidden.flatten(0, 1), words.flatten(), self.tables)
        log_softmax = flat.view(words.shape)
        if self.cache is None:
            return log_softmax
        return self.cache.log_probability(log_softmax, hidden, words, memory)

    def log_probabilities(
        self, hidden: Tensor, asked: Tensor, words: Tensor, memory: Memory | None = None
    ) -> Tensor:
        """Log-probabilities of K words after each hidden state: (B, T, D), (B, T, K) → (B, T, K).

        `asked` are the words whose probabilities are wanted, `words` (B, T) those that really
        follow: a cache knows each of them from the token after it on.
        """
        flat = self.softmax.log_probabilities(
            hidden.flatten(0, 1), asked.flatten(0, 1), self.tables
        )
        log_softmax = flat.view(asked.shape)
        if self.cache is None:
            return log_softmax
        return self.cache.log_probabilities(log_softmax, hidden, asked, words, memory)

    def log_distribution(
        self, hidden: Tensor, words: Tensor | None = None, memory: Memory | None = None
    ) -> Tensor:
        """Log-probabilities of all words after each hidden state: (B, T, D) → (B, T, V).

        A cache also needs the `words` (B, T) that really follow, unless T is 1: it knows each of
        them from the token after it on.
        """
        flat = self.softmax.log_distribution(hidden.flatten(0, 1), self.tables)
        log_softmax = flat.view(*hidden.shape[:2], -1)
        if self.cache is None:
            return log_softmax
        if words is None:
            if hidden.shape[1] > 1:
                raise ValueError("with a cache, several tokens need the words that follow them")
            words = torch.zeros(hidden.shape[:2], dtype=torch.long, device=hidden.device)
        return self.cache.log_distribution(log_softmax, hidden, words, memory)

    def remember(self, memory: Memory | None, hidden: Tensor, words: Tensor) -> Memory | None:
        """Return what the cache holds after `words` followed `hidden`; nothing without a cache."""
        return None if self.cache is None else self.cache.remember(memory, hidden, words)

    @property
    def tables(self) -> list[Tensor]:
        """The bins' embedding tables (V, E), which are also the softmax's rows."""
        return list(self.embedding.tables)

    def parameter_count(self) -> int:
        """Number of trained values, tied tables counted once."""
        return sum(parameter.numel() for parameter in self.parameters())
