"""The rounding against torch's own, for every width; scales, levels and learned scales."""

import numpy as np
import pytest
import torch
from torch import Tensor

from micronet_lm.model.rounding import (
    SMALLEST_SCALE,
    fake_quantize,
    integers,
    largest,
    moved_scales,
    quantized,
    rounded_up,
    scale_for,
)

WIDTHS = range(2, 17)


def draw(*shape: int, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=random) * torch.logspace(-4, 3, shape[0]).view(-1, 1)


@pytest.mark.parametrize("bits", WIDTHS)
def test_values_and_gradients_are_those_of_torch(bits: int) -> None:
    ours, theirs = (draw(9, 500).requires_grad_() for _ in range(2))
    # Scales below what the range needs, so that something is cut off.
    scales = scale_for(ours.detach().abs().amax(dim=1) * 0.6, bits)
    limit = largest(bits)
    zeros = torch.zeros(9, dtype=torch.int32)
    mine = fake_quantize(ours, scales.view(-1, 1), bits)
    yours = torch.fake_quantize_per_channel_affine(theirs, scales, zeros, 0, -limit, limit)
    assert torch.equal(mine, yours)
    weight = draw(9, 500, seed=1)
    (mine * weight).sum().backward()
    (yours * weight).sum().backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    assert torch.equal(ours.grad, theirs.grad)
    assert 0 < int((ours.grad == 0).sum()) < ours.numel()

    whole = scale_for(ours.detach().abs().amax(), bits)
    mine = fake_quantize(ours.detach(), whole, bits)
    yours = torch.fake_quantize_per_tensor_affine(ours.detach(), float(whole), 0, -limit, limit)
    assert torch.equal(mine, yours)


@pytest.mark.parametrize("bits", WIDTHS)
def test_there_are_so_many_levels_and_all_are_exact(bits: int) -> None:
    limit, scale = largest(bits), scale_for(torch.tensor([0.7318]), bits)
    x = torch.linspace(-1, 1, 2**18) * 2
    levels = torch.unique(integers(x, scale, bits))
    assert torch.equal(levels, torch.arange(-limit, limit + 1).float())
    assert len(levels) == 2**bits - 1
    values = quantized(x, scale, bits)
    assert torch.equal(values, -quantized(-x, scale, bits))
    # In fp32 as with unlimited precision: the product of two doubles this short is exact.
    assert torch.equal(values.double(), integers(x, scale, bits).double() * scale.double())
    assert torch.equal(quantized(values, scale, bits), values)


@pytest.mark.parametrize("bits", WIDTHS)
def test_steps_are_the_smallest_that_reach_and_end_in_zeros(bits: int) -> None:
    ranges = torch.cat([draw(40, 50).abs().flatten(), torch.tensor([1.0, 2.0**-100, 3e38 / 2])])
    scales = scale_for(ranges, bits)
    pattern = scales.numpy().view(np.uint32)
    assert not (pattern & ((1 << bits) - 1)).any()
    wanted = ranges.double() / largest(bits)
    assert bool((scales.double() >= wanted).all())
    before = torch.from_numpy((pattern - (1 << bits)).view(np.float32))
    assert bool((before.double() < wanted).all())
    # So nothing of a weight is ever cut off.
    assert bool((integers(ranges, scales, bits) <= largest(bits)).all())
    assert bool((quantized(ranges, scales, bits) - ranges).abs().le(scales / 2 * 1.01).all())


def test_halves_go_to_the_even_neighbour() -> None:
    scale = torch.tensor(0.25)
    x = torch.tensor([0.125, 0.375, 0.625, -0.125, -0.375])
    assert integers(x, scale, 8).tolist() == [0, 2, 2, 0, -2]


@pytest.mark.parametrize("bits", [2, 9, 16])
def test_nothing_and_next_to_nothing(bits: int) -> None:
    ranges = torch.tensor([0.0, 1e-45, 1e-40, 2.0**-126])
    scales = scale_for(ranges, bits)
    assert scales[0] == 0
    assert bool((scales[1:] >= SMALLEST_SCALE).all())
    assert bool((1 / scales[1:]).isfinite().all())
    x = torch.zeros(4, 3).requires_grad_()
    rounded = fake_quantize(x, scales.view(-1, 1), bits)
    assert torch.equal(rounded, torch.zeros(4, 3))
    rounded.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.ones(4, 3))  # a zero channel can come to life
    assert torch.equal(quantized(torch.full((2,), 5.0), torch.zeros(1), bits), torch.zeros(2))


@pytest.mark.parametrize("bits", [2, 4, 9])
def test_learned_steps_have_the_gradient_of_their_paper(bits: int) -> None:
    """Against autograd on the definition: clamp, round straight through, multiply."""
    x, limit = draw(5, 60), largest(bits)
    scales = scale_for(x.abs().amax(dim=1) * 0.5, bits).view(-1, 1)
    ours_x, theirs_x = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours, theirs = scales.clone().requires_grad_(), scales.clone().requires_grad_()
    weight = draw(5, 60, seed=2)
    (fake_quantize(ours_x, ours, bits) * weight).sum().backward()
    scaled = (theirs_x / theirs).clamp(-limit, limit)
    through = scaled + (scaled.round() - scaled).detach()
    (through * theirs * weight).sum().backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    torch.testing.assert_close(ours.grad * (60 * limit) ** 0.5, theirs.grad, rtol=1e-3, atol=1e-4)


def test_moved_steps_are_steps_and_their_logarithm_moves() -> None:
    base = scale_for(torch.tensor([1.0, 0.0, 5.0]), 6)
    moves = torch.zeros(3, requires_grad=True)
    assert torch.equal(moved_scales(base, moves, 10.0, 6), base)
    shifted = torch.tensor([0.01, 0.01, -0.02], requires_grad=True)
    scales = moved_scales(base, shifted, 10.0, 6)
    assert torch.equal(scales, rounded_up(base * torch.exp(10 * shifted), 6).detach())
    scales.sum().backward()
    assert shifted.grad is not None
    torch.testing.assert_close(shifted.grad, (base * torch.exp(10 * shifted) * 10).detach())
