"""Windowed attention against the same thing computed directly, with a mask over all keys."""

from collections.abc import Iterator

import pytest
import torch
from tests.support.sizes import set_sizes
from torch import Tensor

from micronet_lm.model.windowed_attention import windowed_attention

Operands = tuple[Tensor, Tensor, Tensor, Tensor]


def direct(q: Tensor, k: Tensor, v: Tensor, positions: Tensor, missing: int) -> Tensor:
    time, context = q.shape[1], positions.shape[1]
    scores = torch.einsum("bthk,bshk->bhts", q, k)
    by_position = torch.einsum("bthk,kc->bhtc", q, positions)
    t = torch.arange(time)[:, None]
    s = torch.arange(k.shape[1])[None, :]
    column = s - t  # the s-th key is the (s − t)-th of query t's window
    inside = (column >= 0) & (column < context) & (s >= missing)
    index = column.clamp(0, context - 1).expand(*scores.shape[:2], -1, -1)
    scores = scores + by_position.gather(-1, index)
    scores = scores.masked_fill(~inside, float("-inf"))
    return torch.einsum("bhts,bshv->bthv", scores.softmax(-1), v)


def inputs(batch: int, time: int, context: int) -> Operands:
    random = torch.Generator().manual_seed(time * 100 + context)
    heads, key, value = 2, 5, 3

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64).requires_grad_()

    return (
        draw(batch, time, heads, key),
        draw(batch, context - 1 + time, heads, key),
        draw(batch, context - 1 + time, heads, value),
        draw(key, context),
    )


@pytest.mark.parametrize("time", [1, 3, 48, 49, 97, 200])
@pytest.mark.parametrize("context", [1, 2, 7, 49, 60])
@pytest.mark.parametrize("share_missing", [0.0, 0.5, 1.0])
def test_equals_the_direct_computation(time: int, context: int, share_missing: float) -> None:
    tensors = inputs(2, time, context)
    missing = int(share_missing * (context - 1))
    ours = windowed_attention(*tensors, missing)
    theirs = direct(*tensors, missing)
    torch.testing.assert_close(ours, theirs)
    weight = torch.randn_like(theirs)
    for mine, yours in zip(
        torch.autograd.grad((ours * weight).sum(), tensors),
        torch.autograd.grad((theirs * weight).sum(), tensors),
        strict=True,
    ):
        torch.testing.assert_close(mine, yours)


def check_gradients(tensors: Operands, missing: int) -> None:
    """Compare results and all gradients with those of the direct computation."""
    ours, theirs = windowed_attention(*tensors, missing, factor=0.5), halved(tensors, missing)
    torch.testing.assert_close(ours, theirs)
    weight = torch.randn_like(theirs)
    for mine, yours in zip(
        torch.autograd.grad((ours * weight).sum(), tensors),
        torch.autograd.grad((theirs * weight).sum(), tensors),
        strict=True,
    ):
        torch.testing.assert_close(mine, yours)


def halved(tensors: Operands, missing: int) -> Tensor:
    q, k, v, positions = tensors
    return direct(q / 2, k, v, positions, missing)


@pytest.mark.parametrize("time", [3, 48, 97])
@pytest.mark.parametrize("context", [1, 7, 60])
@pytest.mark.parametrize("share_missing", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("way", ["adds_overlaps_at_once", "masks_attention", "both"])
def test_the_ways_of_a_gpu(
    time: int, context: int, share_missing: float, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer operations, the same results and gradients."""
    ways = ["adds_overlaps_at_once", "masks_attention"] if way == "both" else [way]
    set_sizes(monkeypatch, **dict.fromkeys(ways, True))
    check_gradients(inputs(2, time, context), int(share_missing * (context - 1)))


@pytest.fixture
def _nan_in_new_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fill memory that nobody has written with NaN, so that whoever reads it is found."""
    before = torch.are_deterministic_algorithms_enabled()
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before)


@pytest.mark.usefixtures("_nan_in_new_memory")
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("time", [3, 48, 97])
@pytest.mark.parametrize("masks", [False, True])
def test_no_memory_is_read_before_it_is_written(
    batch: int, time: int, masks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for one sequence of one block, whose queries are a view with gaps."""
    assert torch.empty(3).isnan().all()
    set_sizes(monkeypatch, masks_attention=masks, adds_overlaps_at_once=masks)
    check_gradients(inputs(batch, time, 7), 3)


def test_block_size_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = inputs(2, 70, 20)
    results = []
    for block in (1, 19, 20, 64):
        set_sizes(monkeypatch, attention_queries=block)
        results.append(windowed_attention(*tensors, 0))
    for other in results[1:]:
        torch.testing.assert_close(other, results[0])
