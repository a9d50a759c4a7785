import math

import pytest
import torch

from micronet_lm.config import TrainConfig
from micronet_lm.training.schedule import learning_rate


def test_warm_up_is_linear_and_decay_a_half_cosine() -> None:
    config = TrainConfig(steps=1100, warmup=100, learning_rate=0.01, final_learning_rate=0.001)
    rates = [learning_rate(config, step) for step in range(1100)]
    assert rates[0] == pytest.approx(0.01 / 100)
    assert rates[49] == pytest.approx(0.005)
    assert rates[99] == pytest.approx(0.01)
    assert rates[600] == pytest.approx((0.01 + 0.001) / 2)
    assert rates[-1] == pytest.approx(0.001, rel=1e-2)
    assert max(rates) == pytest.approx(0.01)


def test_cosine_equals_torchs() -> None:
    config = TrainConfig(steps=50, warmup=0, learning_rate=0.3)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50)
    for step in range(50):
        assert learning_rate(config, step) == pytest.approx(theirs.get_last_lr()[0], abs=1e-9)
        optimizer.step()
        theirs.step()
    assert math.isfinite(learning_rate(config, 50))
