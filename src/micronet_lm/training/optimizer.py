"""Adam, and its state as named tensors."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from micronet_lm.config import TrainConfig


class Optimizer:
    """AdamW over a model's parameters, with the gradient clipped before each step."""

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        self._clip = config.clip
        decayed = [p for n, p in model.named_parameters() if p.ndim > 1 and "positions" not in n]
        chosen = set(decayed)
        spared = [p for p in model.parameters() if p not in chosen]
        self._adam = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": config.weight_decay},
                {"params": spared, "weight_decay": 0.0},
            ],
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            fused=True,
        )

    def step(self, learning_rate: float) -> float:
        """Clip, move the weights, forget the gradients; return the gradient's norm before.

        When the norm is not finite the weights stay as they are.
        """
        limit = self._clip or float("inf")
        norm = float(nn.utils.clip_grad_norm_(list(self._names), limit))
        if not math.isfinite(norm):
            return norm
        for group in self._adam.param_groups:
            group["lr"] = learning_rate
        self._adam.step()
        self._adam.zero_grad()
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """Return Adam's means as `kind.parameter`."""
        return {
            f"{kind}.{name}": value
            for parameter, name in self._names.items()
            for kind, value in self._adam.state[parameter].items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""
        for full, value in tensors.items():
            kind, _, name = full.partition(".")
            parameter = next(p for p, n in self._names.items() if n == name)
            self._adam.state[parameter][kind] = value.to(parameter.device)
