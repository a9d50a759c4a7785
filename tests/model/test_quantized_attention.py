"""Attention with rounded probabilities against the same thing composed from plain operations."""

import pytest
import torch
from torch import Tensor

from micronet_lm.model.quantizers import ActivationQuantizers, AttentionRounding
from micronet_lm.model.rounding import fake_quantize
from micronet_lm.model.windowed_attention import windowed_attention


def direct(
    q: Tensor, k: Tensor, v: Tensor, positions: Tensor, missing: int, scale: Tensor, bits: int
) -> Tensor:
    time, context = q.shape[1], positions.shape[1]
    scores = torch.einsum("bthk,bshk->bhts", q, k)
    by_position = torch.einsum("bthk,kc->bhtc", q, positions)
    column = torch.arange(k.shape[1])[None, :] - torch.arange(time)[:, None]
    inside = (column >= 0) & (column < context) & (torch.arange(k.shape[1]) >= missing)
    index = column.clamp(0, context - 1).expand(*scores.shape[:2], -1, -1)
    scores = (scores + by_position.gather(-1, index)).masked_fill(~inside, float("-inf"))
    rounded = fake_quantize(scores.softmax(-1).float(), scale, bits)
    return torch.einsum("bhts,bshv->bthv", rounded.double(), v)


@pytest.mark.parametrize("time", [1, 30, 100])
@pytest.mark.parametrize("bits", [3, 9])
@pytest.mark.parametrize("missing", [0, 4, 8])
@pytest.mark.parametrize("learned", [False, True])
def test_values_and_gradients(time: int, bits: int, missing: int, learned: bool) -> None:
    random = torch.Generator().manual_seed(time)
    shapes = ((2, time, 2, 5), (2, 8 + time, 2, 5), (2, 8 + time, 2, 3), (5, 9))
    # In doubles: with sums in fp32, one probability in a million falls to the other integer.
    tensors = [torch.randn(s, generator=random, dtype=torch.float64) for s in shapes]
    tensors = [tensor.requires_grad_() for tensor in tensors]
    quantizers = ActivationQuantizers(2, bits, 10.0 if learned else None)
    quantizers.set_ranges(torch.tensor([1.0, 0.8]))  # some probabilities are cut off
    seen: list[Tensor] = []
    quantizers.watch = lambda number, x: seen.append(x)
    rounding = AttentionRounding(quantizers, 1)
    q, k, v, positions = tensors
    ours = windowed_attention(q, k, v, positions, missing, rounding)
    scale = quantizers.current_scales()[1]
    theirs = direct(q, k, v, positions, missing, scale, bits)
    torch.testing.assert_close(ours, theirs)
    assert 0.8 < float(seen[0].max()) <= 1.0 or time == 1
    parts = [*tensors, *([quantizers.moves] if quantizers.moves is not None else [])]
    weight = torch.randn(ours.shape, generator=random, dtype=torch.float64)
    mine = torch.autograd.grad((ours * weight).sum(), parts)
    yours = torch.autograd.grad((theirs * weight).sum(), parts)
    for one, other in zip(mine[:4], yours, strict=False):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    if learned and bits == 3 and time > 1:
        # The direct computation has zeros outside the band: only the count that it divides by
        # differs, which is that of all numbers that share the scale.
        ratio = mine[4][1] / yours[4][1]
        padded = -(-time // min(48, time)) * min(48, time)
        assert float(ratio) == pytest.approx((time * (8 + time) / (padded * 9)) ** 0.5, rel=1e-3)
        assert float(mine[4][0]) == 0


def test_without_a_quantizer_probabilities_are_rounded_to_fp32() -> None:
    random = torch.Generator().manual_seed(0)
    shapes = ((1, 10, 1, 4), (1, 13, 1, 4), (1, 13, 1, 13), (4, 4))
    q, k, _, positions = (
        torch.randn(shape, generator=random, dtype=torch.float64) for shape in shapes
    )
    v = torch.eye(13, dtype=torch.float64).view(1, 13, 1, 13)  # what comes out are probabilities
    exact = windowed_attention(q, k, v, positions, 0)
    rounded = windowed_attention(q, k, v, positions, 0, AttentionRounding(None, 0))
    assert torch.equal(rounded, exact.float().double())
    assert not torch.equal(rounded, exact)
