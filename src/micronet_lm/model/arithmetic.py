"""A model's arithmetic: with floats, or with quantized weights and activations.

The model's forward is written once. A plain and a quantized model differ in how a weight is
changed before it is used, how an activation is changed before it is passed on, and in the
precision of the sums; an arithmetic defines all three.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from micronet_lm.config import Place
from micronet_lm.model.quantizers import (
    ActivationQuantizers,
    AttentionRounding,
    Quantizers,
    WeightQuantizer,
)
from micronet_lm.model.windowed_attention import windowed_attention


class Arithmetic:
    """The arithmetic of a plain model: weights and activations are used unchanged."""

    def weight(self, parameter: Tensor) -> Tensor:
        """Return a parameter as the forward pass uses it."""
        return parameter

    def linear(self, module: nn.Module, x: Tensor) -> Tensor:
        """Apply a linear map, or the identity."""
        mapped: Tensor = module(x)
        return mapped

    def norm(self, module: nn.LayerNorm, x: Tensor) -> Tensor:
        """Apply a LayerNorm."""
        normed: Tensor = module(x)
        return normed

    def attention(
        self, q: Tensor, k: Tensor, v: Tensor, positions: Tensor, missing: int, layer: int
    ) -> Tensor:
        """Return attention's weighted values, as `windowed_attention` has them."""
        return windowed_attention(q, k, v, positions, missing, factor=q.shape[-1] ** -0.5)

    def activation(self, place: Place, number: int, x: Tensor) -> Tensor:
        """Return an activation as it is passed on."""
        return x


PLAIN = Arithmetic()
"""The arithmetic of all plain models; it has no state."""


class QuantizedArithmetic(Arithmetic):
    """The arithmetic of a quantized model, as docs/arithmetic.md defines it.

    In evaluation everything that feeds a quantizer is summed in doubles and rounded to fp32 once,
    so that every implementation computes the same integers. Training sums in fp32.
    """

    def __init__(self, model: nn.Module, quantizers: Quantizers) -> None:
        self._quantizers = quantizers
        self._weights: dict[Tensor, WeightQuantizer] = {
            model.get_parameter(name): quantizer
            for name, quantizer in quantizers.of_weights().items()
        }
        self._places = quantizers.of_activations()

    @property
    def _exact(self) -> bool:
        return not self._quantizers.training

    def weight(self, parameter: Tensor) -> Tensor:
        """Return a parameter as integers times scales."""
        quantizer = self._weights.get(parameter)
        return parameter if quantizer is None else quantizer(parameter)

    def linear(self, module: nn.Module, x: Tensor) -> Tensor:
        """Apply a linear map, or the identity."""
        if not isinstance(module, nn.Linear):
            return super().linear(module, x)
        weight = self.weight(module.weight)
        bias = None if module.bias is None else self.weight(module.bias)
        if self._exact:
            bias = None if bias is None else bias.double()
            return F.linear(x.double(), weight.double(), bias).float()
        return F.linear(x, weight, bias)

    def norm(self, module: nn.LayerNorm, x: Tensor) -> Tensor:
        """Apply a LayerNorm, whose gain and bias are never quantized."""
        if not self._exact:
            return super().norm(module, x)
        gain, bias = module.weight.double(), module.bias.double()
        return F.layer_norm(x.double(), module.normalized_shape, gain, bias, module.eps).float()

    def attention(
        self, q: Tensor, k: Tensor, v: Tensor, positions: Tensor, missing: int, layer: int
    ) -> Tensor:
        """Return attention's values weighted by quantized probabilities."""
        positions, scale = self.weight(positions), float(np.float32(q.shape[-1] ** -0.5))
        quantizers = self._places.get(Place.ATTENTION_SOFTMAX)
        if self._exact:
            q, k, v, positions = (tensor.double() for tensor in (q, k, v, positions))
        elif quantizers is None:
            return windowed_attention(q, k, v, positions, missing, factor=scale)
        rounding = AttentionRounding(quantizers, layer)
        mixed = windowed_attention(q, k, v, positions, missing, rounding, factor=scale)
        return mixed.to(torch.float32)

    def activation(self, place: Place, number: int, x: Tensor) -> Tensor:
        """Return an activation, as integers times a scale where the place is quantized."""
        quantizers: ActivationQuantizers | None = self._places.get(place)
        return x if quantizers is None else quantizers(x, number)
