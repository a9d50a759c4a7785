import pytest
import torch
from tests.support.bfloat16 import skip_without_bfloat16
from tests.support.gradients import assert_bfloat16_is_close, assert_same, draw_operands
from tests.support.sizes import set_sizes

from micronet_lm.model.logsumexp import linear_logsumexp


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("count", "words"), [(7, 1000), (1, 3), (300, 700), (0, 5)])
def test_value_and_gradients(
    monkeypatch: pytest.MonkeyPatch, keep: bool, count: int, words: int
) -> None:
    set_sizes(monkeypatch, logits_kept=1 << 30 if keep else 0, logits=4096)  # several pieces
    random = torch.Generator().manual_seed(count)
    x, weight, bias = draw_operands(count, words, random)
    ours = linear_logsumexp(x, weight, bias)
    theirs = torch.logsumexp(x @ weight.T + bias, dim=-1)
    assert_same(ours, theirs, (x, weight, bias), random)


def test_large_logits_do_not_overflow() -> None:
    x = torch.full((2, 1), 1e4, requires_grad=True)
    weight = torch.tensor([[1.0], [0.5]])
    result = linear_logsumexp(x, weight, torch.zeros(2))
    torch.testing.assert_close(result, torch.full((2,), 1e4))
    result.sum().backward()
    torch.testing.assert_close(x.grad, torch.ones(2, 1))


@pytest.mark.parametrize("keep", [True, False])
def test_bfloat16_products_give_nearly_the_same_gradients(
    monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    skip_without_bfloat16()
    set_sizes(monkeypatch, logits_kept=1 << 30 if keep else 0)
    torch.manual_seed(0)
    x, weight, bias = torch.randn(500, 16), 0.1 * torch.randn(9000, 16), torch.randn(9000)
    assert_bfloat16_is_close(linear_logsumexp, (x, weight, bias))
