"""Adam by its function: the bits of torch's own class, and a start that does not wait for more."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from micronet_lm.config import TrainConfig
from micronet_lm.training.optimizer import Optimizer


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3))


@pytest.mark.parametrize("clip", [0.0, 0.25])
def test_it_is_torchs_adamw_to_the_bit(clip: float) -> None:
    config = TrainConfig(weight_decay=0.1, beta1=0.8, beta2=0.95, clip=clip)
    ours, theirs = model(), model()
    optimizer = Optimizer(ours, config)
    adam = torch.optim.AdamW(
        [
            {"params": [p for p in theirs.parameters() if p.ndim > 1], "weight_decay": 0.1},
            {"params": [p for p in theirs.parameters() if p.ndim == 1], "weight_decay": 0.0},
        ],
        betas=(0.8, 0.95),
        fused=True,
    )
    for step in range(6):
        rate = 0.1 / (step + 1)
        for network in (ours, theirs):
            x = torch.randn(7, 5, generator=torch.Generator().manual_seed(step))
            network(x).square().sum().backward()
        norm = nn.utils.clip_grad_norm_(theirs.parameters(), clip or float("inf"))
        for group in adam.param_groups:
            group["lr"] = rate
        adam.step()
        adam.zero_grad()
        assert optimizer.step(rate) == float(norm)
        assert all(p.grad is None for p in ours.parameters())
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(one, other)
        if step == 2:  # its state goes through a checkpoint
            kept = optimizer.tensors()
            assert "exp_avg_sq.0.weight" in kept
            optimizer = Optimizer(ours, config)
            optimizer.load(kept)


def test_what_has_no_gradient_stays() -> None:
    ours = model()
    before = ours[1].weight.detach().clone()  # type: ignore[index]
    optimizer = Optimizer(ours, TrainConfig(weight_decay=0.1))
    ours[0](torch.ones(1, 5)).sum().backward()  # type: ignore[index]
    optimizer.step(0.1)
    assert torch.equal(ours[1].weight, before)  # type: ignore[index]
    assert {name.partition(".")[2] for name in optimizer.tensors()} == {"0.weight", "0.bias"}


def test_it_does_not_import_torchs_compiler() -> None:
    script = (
        "import sys, torch\n"
        "from micronet_lm.config import TrainConfig\n"
        "from micronet_lm.training.optimizer import Optimizer\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = Optimizer(model, TrainConfig())\n"
        "model(torch.ones(1, 2)).sum().backward()\n"
        "optimizer.step(0.1)\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
