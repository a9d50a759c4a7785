"""The cache search's minimization: the best share for a sharpness, and the descent along it."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from micronet_lm.compression import Surface, cache_search


@pytest.mark.parametrize(("useful", "ramp"), [(0.0, 0), (0.3, 0), (0.3, 1500), (1.0, 0)])
def test_the_best_lam_for_a_theta(useful: float, ramp: int) -> None:
    """Against a fine grid, also where the best is at an end."""
    torch.manual_seed(0)
    surface = Surface.__new__(Surface)
    surface.log_softmax = torch.rand(2000).double().log() - 3
    helps = torch.rand(2000) < useful
    log_cache = torch.where(helps, surface.log_softmax + 2, float("-inf"))
    tried = surface.best_lam(log_cache, 0.07, ramp)
    assert tried[0][0] == 0.07
    grid = [surface.loss(log_cache, float(lam), ramp) for lam in np.linspace(1e-6, 1 - 1e-6, 2001)]
    assert min(loss for _, loss in tried) < min(grid) + 2e-5  # λ is found to 1e-5
    for lam, loss in tried:
        assert loss == pytest.approx(surface.loss(log_cache, lam, ramp))


@pytest.mark.parametrize(
    ("function", "minimum"),
    [
        (lambda x: (x - 0.03) ** 2, 0.03),
        (lambda x: math.cosh(x - 4) - 0.1 * x, 4 + math.asinh(0.1)),
        (lambda x: -math.exp(-((x + 2.5) ** 2)), -2.5),
        (lambda x: abs(x + 1) ** 1.5, -1.0),
    ],
)
def test_descent(function: Callable[[float], float], minimum: float) -> None:
    tried = []

    def value(x: float) -> float:
        tried.append(x)
        return function(x)

    cache_search._descend(value, 0.0)
    best = min(tried, key=function)
    assert abs(best - minimum) < 0.02
    assert len(tried) < 20
    assert len(set(tried)) == len(tried)  # nothing is computed twice


def test_a_slope_without_an_end_is_left_somewhere() -> None:
    tried = []
    cache_search._descend(lambda x: tried.append(x) or -x, 0.0)  # type: ignore[func-returns-value]
    assert 5 < max(tried) <= 20  # exp of it is still a number
    assert len(tried) < 40
    tried.clear()
    cache_search._descend(lambda x: tried.append(x) or math.nan, 0.0)  # type: ignore[func-returns-value]
    assert len(tried) == 2
