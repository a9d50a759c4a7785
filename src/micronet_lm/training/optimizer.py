"""Adam, with Muon for the layers' matrices if asked for, and its state as named tensors."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from micronet_lm.config import TrainConfig
from micronet_lm.training import muon
from micronet_lm.training.precision import LossScaler


class Optimizer:
    """AdamW over a model's parameters, with the gradient clipped before each step.

    It calls torch's fused kernel directly: creating the first `torch.optim` object imports torch's
    compiler, which takes longer than training a small model.
    """

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        self._config = config
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        decayed = {p for n, p in model.named_parameters() if p.ndim > 1 and "positions" not in n}
        self._matrices = [
            p
            for p, n in self._names.items()
            if config.optimizer == "muon" and muon.takes_muon(n, p)
        ]
        others = [p for p in self._names if p not in set(self._matrices)]
        self._groups = [
            ([p for p in others if p in decayed], config.weight_decay),
            ([p for p in others if p not in decayed], 0.0),
        ]
        self._state: dict[nn.Parameter, dict[str, Tensor]] = {}

    def step(self, learning_rate: float, scaler: LossScaler | None = None) -> float:
        """Clip and apply the gradients, then clear them; return their norm before clipping.

        `scaler` is the one that the loss was scaled with. If the norm is not finite, the weights
        stay unchanged.
        """
        if scaler is not None:
            scaler.unscale([p.grad for p in self._names if p.grad is not None])
        limit = self._config.clip or float("inf")
        norm = float(nn.utils.clip_grad_norm_(list(self._names), limit))
        if not math.isfinite(norm):
            return norm
        for parameters, weight_decay in self._groups:
            self._move([p for p in parameters if p.grad is not None], learning_rate, weight_decay)
        momenta = [(matrix, self._momentum_of(matrix)) for matrix in self._matrices]
        muon.move(momenta, learning_rate, self._config.weight_decay)
        self.clear()
        return norm

    def clear(self) -> None:
        """Forget the gradients."""
        for parameter in self._names:
            parameter.grad = None

    @torch.no_grad()
    def _move(
        self, parameters: list[nn.Parameter], learning_rate: float, weight_decay: float
    ) -> None:
        states = [self._state_of(parameter) for parameter in parameters]
        adamw(
            [*parameters],
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            amsgrad=False,
            maximize=False,
            beta1=self._config.beta1,
            beta2=self._config.beta2,
            lr=learning_rate,
            weight_decay=weight_decay,
            eps=1e-8,
        )

    def _state_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        if parameter not in self._state:
            self._state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self._state[parameter]

    def _momentum_of(self, matrix: nn.Parameter) -> Tensor:
        return self._state.setdefault(matrix, {"exp_avg": torch.zeros_like(matrix)})["exp_avg"]

    def tensors(self) -> dict[str, Tensor]:
        """Return the means of gradients, and Adam's of their squares, as `kind.parameter`."""
        return {
            f"{kind}.{name}": value
            for parameter, name in self._names.items()
            for kind, value in self._state.get(parameter, {}).items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the tensors that `tensors` returned."""
        for full, value in tensors.items():
            kind, _, name = full.partition(".")
            parameter = next(p for p, n in self._names.items() if n == name)
            self._state.setdefault(parameter, {})[kind] = value.to(parameter.device)
