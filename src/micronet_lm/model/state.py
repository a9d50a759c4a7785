"""The state of a stream between two chunks: each layer's last C − 1 keys and values."""

from dataclasses import dataclass

import torch
from torch import Tensor

from micronet_lm.config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class StreamState:
    """Everything that the next token's hidden state depends on besides the token itself."""

    keys: tuple[Tensor, ...]
    """One (B, P, H, K) per layer; the newest last."""

    values: tuple[Tensor, ...]
    """One (B, P, H, d_v) per layer; the newest last."""

    seen: int
    """Number of tokens so far, at most P: fewer than P means that keys are missing."""

    @classmethod
    def empty(
        cls, config: ModelConfig, batch: int, device: torch.device | None = None
    ) -> "StreamState":
        """Return the state at the beginning of a text."""
        lead = (batch, config.context - 1, config.heads)
        keys = torch.zeros(*lead, config.key_width, device=device)
        values = torch.zeros(*lead, config.value_width, device=device)
        return cls(keys=(keys,) * config.layers, values=(values,) * config.layers, seen=0)

    def detach(self) -> "StreamState":
        """Return the state detached from its graph."""
        return StreamState(
            keys=tuple(key.detach() for key in self.keys),
            values=tuple(value.detach() for value in self.values),
            seen=self.seen,
        )
