"""Muon: updates with equal singular values, for the layers' matrices only."""

import pytest
import torch
from torch import nn

from micronet_lm.config import TrainConfig
from micronet_lm.training.muon import MOMENTUM, orthogonalized, takes_muon
from micronet_lm.training.optimizer import Optimizer


class Model(nn.Module):
    """One matrix inside a layer, and what stays with Adam."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList([nn.Linear(6, 9)])
        self.table = nn.Parameter(torch.randn(4, 6))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = self.blocks[0](self.table[ids]).square().sum()
        return loss


def matrix(model: nn.Module) -> torch.Tensor:
    return dict(model.named_parameters())["blocks.0.weight"].detach().clone()


@pytest.mark.parametrize("shape", [(8, 30), (30, 8), (12, 12)])
def test_singular_values_come_near_one(shape: tuple[int, int]) -> None:
    own = torch.randn(*shape, generator=torch.Generator().manual_seed(1)) * 1e-4
    u, _, v = torch.linalg.svd(own, full_matrices=False)
    found = orthogonalized(own)
    # In the basis of the matrix's own singular vectors the result is diagonal.
    inside = u.T @ found @ v.T
    values = inside.diagonal()
    assert torch.allclose(inside, values.diag(), atol=1e-3)
    assert bool((values < 1.3).all())
    assert bool((values > 0).all())
    assert values.median() > 0.6


def test_a_matrix_moves_by_its_orthogonal_momentum() -> None:
    model = Model()
    optimizer = Optimizer(model, TrainConfig(optimizer="muon", weight_decay=0.5, clip=0.0))
    mean = torch.zeros(9, 6)
    for ids in ([0, 1, 2, 3], [3, 3, 2, 1], [0, 0, 1, 3]):
        model(torch.tensor(ids)).backward()
        before = matrix(model)
        gradient = dict(model.named_parameters())["blocks.0.weight"].grad
        assert gradient is not None
        mean = MOMENTUM * mean + (1 - MOMENTUM) * gradient
        ahead = MOMENTUM * mean + (1 - MOMENTUM) * gradient
        optimizer.step(0.01)
        expected = before * (1 - 0.01 * 0.5) - 0.01 * 0.2 * 9**0.5 * orthogonalized(ahead)
        assert torch.allclose(matrix(model), expected, atol=1e-6)


def test_everything_else_is_adams_to_the_bit() -> None:
    with_muon, plain = Model(), Model()
    for model, name in ((with_muon, "muon"), (plain, "adam")):
        optimizer = Optimizer(model, TrainConfig(optimizer=name, clip=0.0))
        model(torch.tensor([0, 1, 2, 3])).backward()
        optimizer.step(0.01)
    adams, ours = dict(plain.named_parameters()), dict(with_muon.named_parameters())
    assert all(torch.equal(ours[name], adams[name]) for name in ("table", "blocks.0.bias"))
    assert not torch.equal(matrix(with_muon), matrix(plain))


def test_its_state_goes_through_a_checkpoint() -> None:
    models, kept = (Model(), Model()), {}
    for model, interrupted in zip(models, (False, True), strict=True):
        config = TrainConfig(optimizer="muon")
        optimizer = Optimizer(model, config)
        for step in range(4):
            if interrupted and step == 2:
                kept = optimizer.tensors()
                optimizer = Optimizer(model, config)
                optimizer.load(kept)
            model(torch.tensor([step % 4, 1, 2])).backward()
            optimizer.step(0.01)
    assert torch.equal(matrix(models[0]), matrix(models[1]))
    assert "exp_avg.blocks.0.weight" in kept
    assert "exp_avg_sq.blocks.0.weight" not in kept


def test_which_parameters_it_takes() -> None:
    table = nn.Parameter(torch.zeros(3, 4))
    assert takes_muon("blocks.0.attention.qkv.weight", table)
    assert not takes_muon("blocks.0.attention.positions", table)
    assert not takes_muon("embedding.tables.0", table)
    assert not takes_muon("blocks.0.attention.qkv.bias", nn.Parameter(torch.zeros(3)))
