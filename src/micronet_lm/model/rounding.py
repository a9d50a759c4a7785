"""Symmetric linear quantization (section 4.3): the rounding, its steps, and its gradients.

Of w bits, M = 2^(w−1) − 1 is the largest integer: there are 2^w − 1 levels, symmetric around 0.
The step Δ (the paper's inverse scale) has 0 in the last w bits of its mantissa, so that every
integer · Δ is exact in fp32. docs/arithmetic.md fixes the rounding for all implementations.
"""

import math
from typing import Any

import torch
from torch import Tensor

MANTISSA = 23
"""Stored mantissa bits of a float32."""

SMALLEST_STEP = 2.0**-126
"""The smallest normal float32: its reciprocal is finite."""


def largest(bits: int) -> int:
    """M: the largest integer of so many bits."""
    return (1 << (bits - 1)) - 1


def step_for(ranges: Tensor, bits: int) -> Tensor:
    """Δ = range / M, rounded up to a float32 whose last w mantissa bits are 0; 0 for range 0."""
    return rounded_up(ranges.double() / largest(bits), bits)


def rounded_up(values: Tensor, bits: int) -> Tensor:
    """Round up to float32 steps; positive values below the smallest step become that step."""
    kept = 2.0 ** (MANTISSA - bits + 1)  # mantissas of frexp lie in [1/2, 1)
    mantissa, exponent = torch.frexp(values.double())
    exact = torch.ldexp((mantissa * kept).ceil() / kept, exponent)
    steps = exact.clamp_min(SMALLEST_STEP).float()
    return torch.where(values > 0, steps, 0.0)


def integers(x: Tensor, steps: Tensor, bits: int) -> Tensor:
    """Give clamp(rint(x · fl(1/Δ)), −M, M) as floats; 0 where Δ is 0. `steps` are broadcast."""
    limit = largest(bits)
    return _scaled(x, steps).round_().clamp_(-limit, limit)


def quantized(x: Tensor, steps: Tensor, bits: int) -> Tensor:
    """Give integer · Δ, exactly, without gradients."""
    return integers(x, steps, bits).mul_(steps)


def quantize_backward(
    x: Tensor, steps: Tensor, bits: int, gradient: Tensor, *, learned: bool
) -> tuple[Tensor, Tensor | None]:
    """Gradients of `quantized` with respect to x and, if they are learned, to the steps.

    Straight through where nothing was cut off, and none beyond. For a step it is that of learned
    step sizes (Esser et al., arXiv 1902.08153): q − x/Δ inside and ±M outside, times 1/√(n·M)
    for the n numbers that share the step, so that its gradients are as large as a weight's.
    """
    scaled, limit = _scaled(x, steps), largest(bits)
    nearest = scaled.round()
    inside = nearest.abs() <= limit
    d_x = gradient * inside
    if not learned:
        return d_x, None
    within = scaled.abs() < limit
    slope = torch.where(within, nearest - scaled, nearest.clamp(-limit, limit))
    shared = max(1, x.numel() // steps.numel())
    d_steps = (gradient * slope).sum_to_size(steps.shape) / math.sqrt(shared * limit)
    return d_x, d_steps.to(steps.dtype)


def fake_quantize(x: Tensor, steps: Tensor, bits: int) -> Tensor:
    """Give integer · Δ with gradients: straight through to x, and to steps that are learned."""
    result: Tensor = _FakeQuantize.apply(x, steps, bits)  # type: ignore[no-untyped-call]
    return result


def moved_steps(base: Tensor, moves: Tensor, rate: float, bits: int) -> Tensor:
    """Steps that are learned: base · exp(rate · moves), rounded up; straight through.

    Adam moves every parameter by about its learning rate. A step's logarithm, and not the step,
    is what should move so: steps differ by orders of magnitude.
    """
    result: Tensor = _RoundedUp.apply(base * torch.exp(rate * moves), bits)  # type: ignore[no-untyped-call]
    return result


class _FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, steps: Tensor, bits: int) -> Tensor:
        ctx.save_for_backward(x, steps)
        ctx.bits = bits
        return quantized(x, steps, bits)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, steps = ctx.saved_tensors
        learned = ctx.needs_input_grad[1]
        return *quantize_backward(x, steps, ctx.bits, gradients[0], learned=learned), None


class _RoundedUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, bits: int) -> Tensor:
        return rounded_up(values, bits)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return gradients[0], None


def _scaled(x: Tensor, steps: Tensor) -> Tensor:
    """Give x · fl(1/Δ) in fp32; 0 where Δ is 0."""
    return x * torch.where(steps > 0, 1 / steps, 0.0)
