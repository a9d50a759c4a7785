"""Symmetric linear quantization (section 4.3): the rounding, its scales, and its gradients.

Of w bits, M = 2^(w−1) − 1 is the largest integer: there are 2^w − 1 levels, symmetric around 0.
The scale Δ (the paper's inverse scale) has 0 in the last w bits of its mantissa, so that every
integer · Δ is exact in fp32. docs/arithmetic.md fixes the rounding for all implementations.
"""

import math
from typing import Any

import torch
from torch import Tensor

MANTISSA = 23
"""Stored mantissa bits of a float32."""

SMALLEST_SCALE = 2.0**-126
"""The smallest normal float32: its reciprocal is finite."""


def largest(bits: int) -> int:
    """Return M, the largest integer of this many bits."""
    return (1 << (bits - 1)) - 1


def scale_for(ranges: Tensor, bits: int) -> Tensor:
    """Return Δ = range / M, rounded up to a float32 with w last mantissa bits 0; 0 for range 0."""
    return rounded_up(ranges.double() / largest(bits), bits)


def rounded_up(values: Tensor, bits: int) -> Tensor:
    """Round up to float32 scales; positive values below the smallest scale become that scale."""
    kept = 2.0 ** (MANTISSA - bits + 1)  # mantissas of frexp lie in [1/2, 1)
    mantissa, exponent = torch.frexp(values.double())
    exact = torch.ldexp((mantissa * kept).ceil() / kept, exponent)
    scales = exact.clamp_min(SMALLEST_SCALE).float()
    return torch.where(values > 0, scales, 0.0)


def integers(x: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Return clamp(rint(x · fl(1/Δ)), −M, M) as floats; 0 where Δ is 0. `scales` broadcast."""
    limit = largest(bits)
    return _scaled(x, scales).round_().clamp_(-limit, limit)


def quantized(x: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Return integer · Δ, exactly, without gradients."""
    return integers(x, scales, bits).mul_(scales)


def quantize_backward(
    x: Tensor, scales: Tensor, bits: int, gradient: Tensor, *, learned: bool
) -> tuple[Tensor, Tensor | None]:
    """Return gradients of `quantized` with respect to x and, if learned, to the scales.

    That of x is passed straight through inside the range, and is 0 outside. That of a scale is from
    learned step size quantization (Esser et al., arXiv 1902.08153): q − x/Δ inside and ±M
    outside, times 1/√(n·M) for the n numbers that share the scale, so that its gradients are as
    large as a weight's.
    """
    scaled, limit = _scaled(x, scales), largest(bits)
    nearest = scaled.round()
    inside = nearest.abs() <= limit
    d_x = gradient * inside
    if not learned:
        return d_x, None
    within = scaled.abs() < limit
    slope = torch.where(within, nearest - scaled, nearest.clamp(-limit, limit))
    shared = max(1, x.numel() // scales.numel())
    d_scales = (gradient * slope).sum_to_size(scales.shape) / math.sqrt(shared * limit)
    return d_x, d_scales.to(scales.dtype)


def fake_quantize(x: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Return integer · Δ with gradients: straight through to x, and to learned scales."""
    result: Tensor = _FakeQuantize.apply(x, scales, bits)  # type: ignore[no-untyped-call]
    return result


def moved_scales(base: Tensor, moves: Tensor, rate: float, bits: int) -> Tensor:
    """Return learned scales: base · exp(rate · moves), rounded up; gradients go straight through.

    Adam moves every parameter by about its learning rate. Scales differ by orders of magnitude, so
    their logarithms are the parameters.
    """
    result: Tensor = _RoundedUp.apply(base * torch.exp(rate * moves), bits)  # type: ignore[no-untyped-call]
    return result


class _FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scales: Tensor, bits: int) -> Tensor:
        ctx.save_for_backward(x, scales)
        ctx.bits = bits
        return quantized(x, scales, bits)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, scales = ctx.saved_tensors
        learned = ctx.needs_input_grad[1]
        return *quantize_backward(x, scales, ctx.bits, gradients[0], learned=learned), None


class _RoundedUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, bits: int) -> Tensor:
        return rounded_up(values, bits)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return gradients[0], None


def _scaled(x: Tensor, scales: Tensor) -> Tensor:
    """Return x · fl(1/Δ) in fp32; 0 where Δ is 0."""
    return x * torch.where(scales > 0, 1 / scales, 0.0)
