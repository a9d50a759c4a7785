"""Scales are those of training, to the bit; and what no scale can be is known."""

import numpy as np
import pytest
import torch

from micronet_lm.artifact.scales import LARGEST, SMALLEST, are_scales, quantized, scales_of
from micronet_lm.model.rounding import integers, scale_for


@pytest.mark.parametrize("bits", range(2, 17))
def test_steps_and_integers_are_trainings(bits: int) -> None:
    random = np.random.default_rng(bits)
    ranges = np.float32(10) ** random.uniform(-30, 20, 500).astype(np.float32)
    ranges[:3] = 0, 1, 2.0**-149
    scales = scales_of(ranges, bits)
    np.testing.assert_array_equal(scales, scale_for(torch.from_numpy(ranges), bits).numpy())
    assert are_scales(scales, bits)
    values = (random.uniform(-1.1, 1.1, 500) * ranges).astype(np.float32)
    wanted = integers(torch.from_numpy(values), torch.from_numpy(scales), bits).numpy()
    np.testing.assert_array_equal(quantized(values, scales, bits), wanted)


def test_what_no_step_can_be() -> None:
    for bad in (np.nan, np.inf, -1.0, -0.0, SMALLEST / 2, LARGEST * 2, 1 + 2.0**-20):
        assert not are_scales(np.array([1.0, bad], np.float32), 9), bad
    assert are_scales(np.array([0.0, SMALLEST, LARGEST, 1 + 2.0**-14], np.float32), 9)
    assert not are_scales(np.array([1 + 2.0**-14], np.float32), 10)
