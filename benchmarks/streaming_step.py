"""One streaming step of a model as a fixed graph, for compilers and exporters.

The numbers equal those of `LanguageModel` for one token at a time, but the code is written for
speed: the mixture changes only words in the cache, and the cache is a ring buffer that the caller
writes, because its order does not matter.
"""

from itertools import pairwise
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from micronet_lm.model import LanguageModel
from micronet_lm.model.cache import Cache
from micronet_lm.model.transformer import Block


class StreamingStep(nn.Module):
    """Map from a word and the state before it to all log-probabilities and the next state."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.config = model.config
        cache = cache_of(model)
        self.theta, self.lam = cache.theta.item(), cache.lam.item()
        self.blocks, self.projections = model.blocks, model.embedding.projections
        self.tables = nn.ParameterList(model.tables)
        first = torch.cat([model.tables[0], model.softmax.tail_weight])
        rows = [first, *model.tables[1:]]
        biases = [torch.cat([model.softmax.biases[0], model.softmax.tail_bias])]
        biases += list(model.softmax.biases)[1:]
        # Transposed copies, which exporters turn into plain matrix products with constants.
        self.rows = nn.ParameterList(row.detach().T.contiguous() for row in rows)
        self.biases = nn.ParameterList(bias.detach().clone() for bias in biases)
        self.to_bins = model.softmax.projections

    def forward(
        self, word: Tensor, keys: Tensor, values: Tensor, states: Tensor, words: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Take word (1), keys and values (L, P, H, K), and the cache's states (N, D), words (N).

        Return log-probabilities (V), the new keys and values, and the hidden state (1, D).
        """
        x = self._embed(word)  # (1, D)
        new_keys, new_values = [], []
        for number, module in enumerate(self.blocks):
            block = cast("Block", module)
            attention = block.attention
            heads, k, v = attention.heads, attention.key_width, attention.value_width
            qkv = attention.qkv(block.attention_norm(x))
            q, key, value = qkv.split([heads * k, heads * k, heads * v], dim=-1)
            q = q.view(heads, 1, k) * k**-0.5
            all_keys = torch.cat([keys[number], key.view(1, heads, k)])  # (C, H, K)
            all_values = torch.cat([values[number], value.view(1, heads, v)])
            scores = q @ (all_keys.permute(1, 2, 0) + attention.positions)  # (H, 1, C)
            mixed = torch.softmax(scores, dim=-1) @ all_values.transpose(0, 1)  # (H, 1, d_v)
            x = x + attention.output(mixed.reshape(1, heads * v))
            x = x + block.outer(block.inner(block.ffn_norm(x)).relu())
            new_keys.append(all_keys[1:])
            new_values.append(all_values[1:])
        log_p = self._mix(self._log_softmax(x), x, states, words)
        return log_p, torch.stack(new_keys), torch.stack(new_values), x

    def _embed(self, word: Tensor) -> Tensor:
        parts = []
        for (low, high), table, projection in zip(
            pairwise(self.config.bounds), self.tables, self.projections, strict=True
        ):
            inside = ((word >= low) & (word < high)).to(table.dtype).unsqueeze(1)
            row = F.embedding((word - low).clamp(0, high - low - 1), table)
            parts.append(projection(row) * inside)
        return torch.stack(parts).sum(dim=0)

    def _log_softmax(self, x: Tensor) -> Tensor:
        cut = self.config.bounds[1]
        head = torch.log_softmax(self.to_bins[0](x) @ self.rows[0] + self.biases[0], dim=-1)
        parts = [head[:, :cut]]
        for tail in range(1, len(self.rows)):
            within = self.to_bins[tail](x) @ self.rows[tail] + self.biases[tail]
            entry = head[:, cut + tail - 1 : cut + tail]
            parts.append(torch.log_softmax(within, dim=-1) + entry)
        return torch.cat(parts, dim=1).squeeze(0)  # (V)

    def _mix(self, log_softmax: Tensor, x: Tensor, states: Tensor, words: Tensor) -> Tensor:
        votes = torch.softmax((states @ (self.theta * x).T).squeeze(1), dim=0)  # (N)
        every = torch.zeros_like(log_softmax).scatter_add(0, words, votes)
        kept, share = log_softmax[words].exp() * (1 - self.lam), every[words] * self.lam
        plain = log_softmax + torch.log1p(torch.tensor(-self.lam))
        return plain.scatter(0, words, (kept + share).log())


class Stream:
    """The state between steps, in torch."""

    def __init__(self, model: LanguageModel) -> None:
        shape = model.config
        lead = (shape.layers, shape.context - 1, shape.heads)
        size = cache_of(model).size
        self.keys = torch.randn(*lead, shape.key_width)
        self.values = torch.randn(*lead, shape.value_width)
        self.states = torch.randn(size, shape.width)
        self.words = torch.randint(0, shape.bounds[-1], (size,))
        self._next = 0

    def arguments(self, word: int) -> tuple[Tensor, ...]:
        """Return the arguments of the step."""
        return torch.tensor([word]), self.keys, self.values, self.states, self.words

    def advance(self, keys: Tensor, values: Tensor, hidden: Tensor, word: int) -> None:
        """Set the state after a step that `word` followed."""
        self.keys, self.values = keys, values
        self.states[self._next] = hidden[0]
        self.words[self._next] = word
        self._next = (self._next + 1) % len(self.words)


NAMES = ("word", "keys", "values", "states", "words")
"""Inputs of the exported graph."""


def export(step: StreamingStep, stream: Stream, path: Path) -> None:
    """Write the step as an ONNX graph."""
    outputs = ["log_probabilities", "new_keys", "new_values", "hidden"]
    program = torch.onnx.export(
        step.eval(),
        stream.arguments(0),
        dynamo=True,
        input_names=list(NAMES),
        output_names=outputs,
        verbose=False,
    )
    if program is None:
        raise RuntimeError("the exporter gave no graph")
    program.save(path)


def cache_of(model: LanguageModel) -> Cache:
    """Return the model's cache, which a step needs."""
    if model.cache is None:
        raise ValueError("the step is written for a model with a cache")
    return model.cache
