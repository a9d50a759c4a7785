"""The paper's transformer: short joint contexts, one position table per layer."""

import math

import torch
from torch import Tensor, nn

from micronet_lm.config import CacheConfig, ModelConfig, Place
from micronet_lm.model.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from micronet_lm.model.arithmetic import PLAIN, Arithmetic, QuantizedArithmetic
from micronet_lm.model.cache import Cache, Memory
from micronet_lm.model.initialization import initialize
from micronet_lm.model.quantizers import Quantizers, Scheme
from micronet_lm.model.state import StreamState


class Attention(nn.Module):
    """Causal attention to the last C tokens, with trained scores for relative positions."""

    arithmetic: Arithmetic = PLAIN

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
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

        Return the output (B, T, D) and the last P keys and values for the next chunk.
        """
        batch, time, _ = x.shape
        before = self.context - 1  # P
        wide, own = self.heads * self.key_width, self.arithmetic
        qkv = own.activation(Place.QKV, self.layer, own.linear(self.qkv, x))
        q, k, v = qkv.split([wide, wide, self.heads * self.value_width], dim=-1)
        q = q.view(batch, time, self.heads, self.key_width)
        k = k.view(batch, time, self.heads, self.key_width)
        v = v.view(batch, time, self.heads, self.value_width)
        k = torch.cat([keys.to(k.dtype), k], dim=1)  # (B, P + T, H, K)
        v = torch.cat([values.to(v.dtype), v], dim=1)
        mixed = own.attention(q, k, v, self.positions, before - seen, self.layer)  # (B, T, H, d_v)
        mixed = own.activation(Place.ATTENTION_VALUES, self.layer, mixed.flatten(2))
        return own.linear(self.output, mixed), k[:, time:], v[:, time:]


class Block(nn.Module):
    """LayerNorm, attention, residual; LayerNorm, feed-forward, residual."""

    arithmetic: Arithmetic = PLAIN

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = Attention(config, layer)
        self.ffn_norm = nn.LayerNorm(config.width)
        self.inner = nn.Linear(config.width, config.ffn_width)
        self.outer = nn.Linear(config.ffn_width, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.inner_dropout = _authors_dropout(config)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, seen: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Map (B, T, D) to (B, T, D), with the keys and values for the next chunk."""
        own, layer = self.arithmetic, self.layer
        normed = own.activation(Place.ATTENTION_NORM, layer, own.norm(self.attention_norm, x))
        mixed, keys, values = self.attention(normed, keys, values, seen)
        x = x + self.dropout(mixed)
        normed = own.activation(Place.FFN_NORM, layer, own.norm(self.ffn_norm, x))
        inner = self.inner_dropout(own.linear(self.inner, normed).relu())
        inner = own.activation(Place.RELU, layer, inner)
        outer = own.activation(Place.FFN_OUTPUT, layer, own.linear(self.outer, inner))
        return x + self.dropout(outer), keys, values


class LanguageModel(nn.Module):
    """Map from word ids to hidden states, and from these to probabilities of the next word."""

    arithmetic: Arithmetic = PLAIN

    def __init__(
        self, config: ModelConfig, cache: CacheConfig | None = None, scheme: Scheme | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.embedding = AdaptiveEmbedding(config)
        self.dropout = nn.Dropout(config.dropout)
        self.last_dropout = _authors_dropout(config)
        self.scale = math.sqrt(config.width) if config.scale_embedding else 1.0
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.layers))
        self.softmax = AdaptiveSoftmax(config)
        initialize(self)
        self.cache = Cache(cache) if cache else None
        self.quantizers: Quantizers | None = None
        if scheme is not None:
            self.quantize(scheme)

    def quantize(self, scheme: Scheme) -> None:
        """Compute with integers from now on; all scales are 0 until they are set."""
        counts = {place: self.config.quantizers(place) for place in Place}
        self.quantizers = Quantizers(scheme, counts).train(self.training)
        self.quantizers.to(self.softmax.tail_bias.device)
        arithmetic = QuantizedArithmetic(self, self.quantizers)
        for module in self.modules():
            if isinstance(module, (Attention, Block, AdaptiveEmbedding, AdaptiveSoftmax)):
                module.arithmetic = arithmetic
        self.arithmetic = arithmetic

    def forward(self, ids: Tensor, state: StreamState | None = None) -> tuple[Tensor, StreamState]:
        """Return the hidden states (B, T, D) of ids (B, T) after `state`, and the next state.

        Without a state the text begins here. The next chunk needs the returned state.
        """
        if state is None:
            state = StreamState.empty(self.config, len(ids), ids.device)
        x = self.embedding(ids)
        x = self.dropout(x if self.scale == 1.0 else x * self.scale)
        keys, values = [], []
        for block, key, value in zip(self.blocks, state.keys, state.values, strict=True):
            x, key, value = block(x, key, value, state.seen)
            keys.append(key)
            values.append(value)
        x = self.arithmetic.activation(Place.HIDDEN, 0, self.last_dropout(x))
        seen = min(state.seen + ids.shape[1], self.config.context - 1)
        return x, StreamState(keys=tuple(keys), values=tuple(values), seen=seen)

    def log_probability(
        self, hidden: Tensor, words: Tensor, memory: Memory | None = None
    ) -> Tensor:
        """Return the log-probability of the word after each state: (B, T, D), (B, T) → (B, T).

        With a cache, `memory` is its contents before the first of these tokens; without a memory
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
        """Return log-probabilities of K words per hidden state: (B, T, D), (B, T, K) → (B, T, K).

        `asked` are the words whose probabilities are returned, `words` (B, T) the true ones: each
        is in the cache for all tokens after it.
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
        """Return log-probabilities of all words after each hidden state: (B, T, D) → (B, T, V).

        A cache also needs the true `words` (B, T), unless T is 1: each is in the cache for all
        tokens after it.
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
        """Return the memory after `words` followed `hidden`; None without a cache."""
        return None if self.cache is None else self.cache.remember(memory, hidden, words)

    @property
    def tables(self) -> list[Tensor]:
        """Return the bins' embedding tables (V, E), quantized if the model is."""
        return [self.arithmetic.weight(table) for table in self.embedding.tables]

    def parameter_count(self) -> int:
        """Return the number of trained weights, tied tables counted once, scales not counted."""
        named = self.named_parameters()
        return sum(p.numel() for name, p in named if not name.startswith("quantizers."))


def _authors_dropout(config: ModelConfig) -> nn.Dropout:
    """Return dropout for a place that only the authors' code has."""
    return nn.Dropout(config.dropout if config.dropout_places == "code" else 0.0)
