"""Gradients of functions of a linear map's operands, compared with those of plain torch."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Operands = tuple[Tensor, Tensor, Tensor]
"""x (tokens, width), weight (words, width) and bias (words)."""


def draw_operands(count: int, words: int, random: torch.Generator) -> Operands:
    x, weight, bias = (
        (3 * torch.randn(shape, generator=random, dtype=torch.float64)).requires_grad_()
        for shape in ((count, 6), (words, 6), (words,))
    )
    return x, weight, bias


def assert_same(ours: Tensor, theirs: Tensor, inputs: Operands, random: torch.Generator) -> None:
    """Compare two results, and the gradients of a random sum of each."""
    torch.testing.assert_close(ours, theirs)
    scale = torch.randn(ours.shape, generator=random, dtype=torch.float64)
    for mine, yours in zip(
        torch.autograd.grad((ours * scale).sum(), inputs),
        torch.autograd.grad((theirs * scale).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(mine, yours)


def assert_bfloat16_is_close(
    function: Callable[[Tensor, Tensor, Tensor], Tensor], operands: Operands
) -> None:
    """Compare gradients of fp32 products with those of bfloat16 products, which end in fp32."""
    gradients = []
    for low in (False, True):
        x, weight, bias = (tensor.clone().requires_grad_() for tensor in operands)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
            result = function(x, weight, bias)
        assert result.dtype == torch.float32
        gradients.append(torch.autograd.grad(result.mean(), (x, weight, bias)))
    for exact, rounded in zip(*gradients, strict=True):
        assert float((exact - rounded).norm() / exact.norm()) < 0.01


class Sizes(TorchDispatchMode):
    """Notes the size of every tensor that is made inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[int] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = func(*args, **(kwargs or {}))
        self.seen.extend(t.numel() for t in [out] if isinstance(t, Tensor))
        return out
