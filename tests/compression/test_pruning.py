"""Magnitude, schedule and allocation: against independent computations and closed forms."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.shapes import EVEN_BINS

from micronet_lm.compression.allocation import Curve, by_slope, by_threshold, uniform
from micronet_lm.compression.criteria import CRITERIA, CriterionName, pruning_order
from micronet_lm.compression.gradual_pruning import cubic_sparsity, prune_once
from micronet_lm.compression.magnitude import Ranking, model_sparsity, prunable
from micronet_lm.config import CacheConfig
from micronet_lm.errors import UsageError
from micronet_lm.model import LanguageModel


def model() -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(EVEN_BINS, CacheConfig(size=10))


def test_every_weight_matrix_is_prunable_and_nothing_else() -> None:
    lm = model()
    names = set(prunable(lm))
    assert {f"embedding.tables.{n}" for n in range(3)} <= names
    assert {"embedding.projections.1.weight", "softmax.projections.2.weight"} <= names
    assert {
        "softmax.tail_weight",
        "blocks.1.attention.qkv.weight",
        "blocks.0.outer.weight",
    } <= names
    assert len(names) == 3 + 2 + 2 + 1 + 2 * 4
    rest = set(dict(lm.named_parameters())) - names
    assert all("bias" in n or "norm" in n or "positions" in n or "cache" in n for n in rest)


@settings(max_examples=40)
@given(
    rows=st.integers(0, 12), sparsity=st.floats(0, 1), zeros=st.integers(0, 30), seed=st.integers(0)
)
def test_masks_remove_exactly_the_smallest(
    rows: int, sparsity: float, zeros: int, seed: int
) -> None:
    """Also of a matrix without entries, with zeros already, with equal magnitudes."""
    random = np.random.default_rng(seed)
    values = random.integers(-4, 5, size=rows * 5).astype(np.float32)  # many ties
    values[:zeros] = 0
    weight = torch.from_numpy(values).view(rows, 5)
    keep = Ranking(weight).keep(sparsity)
    assert int((~keep).sum()) == round(rows * 5 * sparsity)
    if keep.any() and (~keep).any():
        assert weight.abs()[~keep].max() <= weight.abs()[keep].min()
    assert torch.equal(keep, Ranking(weight.clone()).keep(sparsity))


def test_sparser_masks_hold_those_that_are_less_sparse() -> None:
    ranking = Ranking(torch.randn(20, 20))
    masks = [ranking.keep(sparsity) for sparsity in (0.0, 0.2, 0.5, 0.9, 1.0)]
    for wide, narrow in itertools.pairwise(masks):
        assert not (narrow & ~wide).any()
    assert masks[0].all()
    assert not masks[-1].any()


def test_model_sparsity_is_the_weighted_mean() -> None:
    """ρ = Σ |φ| ρ_φ / Σ |φ|, from the matrices one by one."""
    lm = model()
    sparsities = {name: 0.1 + 0.04 * n for n, name in enumerate(prunable(lm))}
    prune_once(lm, sparsities)
    sizes = {name: matrix.numel() for name, matrix in prunable(lm).items()}
    own = {name: float((matrix == 0).float().mean()) for name, matrix in prunable(lm).items()}
    weighted = sum(sizes[name] * own[name] for name in own)
    assert model_sparsity(lm) == pytest.approx(weighted / sum(sizes.values()))
    for name, share in own.items():
        assert share == pytest.approx(sparsities[name], abs=0.5 / sizes[name] + 1e-9)


@pytest.mark.parametrize(("initial", "final"), [(0.16, 0.358), (0.0, 0.9), (0.3, 0.3)])
def test_the_schedule_is_the_cubic_one(initial: float, final: float) -> None:
    oracle = pytest.importorskip("torch.ao.pruning.scheduler.cubic_scheduler").CubicSL
    for steps, every in ((100, 10), (90, 1), (1000, 250)):
        for step in range(0, steps + 1, every):
            theirs = oracle.sparsity_compute_fn(initial, final, step, 0, every, steps // every)
            ours = cubic_sparsity(step, steps=steps, initial=initial, final=final)
            assert ours == pytest.approx(theirs)
    assert cubic_sparsity(5000, steps=100, initial=initial, final=final) == final
    values = [cubic_sparsity(t, steps=50, initial=initial, final=final) for t in range(51)]
    assert values == sorted(values)


def test_allocation_in_closed_form() -> None:
    """Straight lines ξ = 10 + k ρ: ρ_φ = (ξ* − 10) / k, so the weighted mean gives ξ* itself."""
    slopes, sizes = {"a": 1.0, "b": 4.0, "c": 10.0}, {"a": 100, "b": 300, "c": 600}
    grid = np.linspace(0, 1, 11)
    curves = {name: Curve(list(grid), list(10 + k * grid)) for name, k in slopes.items()}
    for target in (0.0, 0.05, 0.1, 0.19):  # before a is full
        result = by_threshold(curves, sizes, target)
        excess = target * 1000 / sum(sizes[n] / slopes[n] for n in sizes)
        assert result.threshold == pytest.approx(10 + excess, abs=1e-6)
        assert result.sparsity == pytest.approx(target, abs=1e-9)
        for name, slope in slopes.items():
            assert result.sparsities[name] == pytest.approx(excess / slope, abs=1e-6)
    # With a full, the rest is shared by b and c.
    result = by_threshold(curves, sizes, 0.5)
    excess = (500 - 100) / (300 / 4 + 600 / 10)
    assert result.sparsities["a"] == 1.0
    assert result.sparsities["c"] == pytest.approx(excess / 10, abs=1e-6)


def test_allocation_on_curves_that_bend() -> None:
    """f = e^{k ρ}: f⁻¹ = log ξ / k, on a fine grid."""
    grid = np.linspace(0, 0.9, 2001)
    ks, sizes = {"a": 2.0, "b": 5.0}, {"a": 10, "b": 30}
    curves = {name: Curve(list(grid), list(np.exp(k * grid))) for name, k in ks.items()}
    result = by_threshold(curves, sizes, 0.2)
    log = 0.2 * 40 / (10 / 2 + 30 / 5)
    assert result.threshold is not None
    assert math.log(result.threshold) == pytest.approx(log, abs=1e-5)
    assert result.sparsities == pytest.approx({"a": log / 2, "b": log / 5}, abs=1e-5)


def test_flat_and_falling_curves_have_a_place_for_every_target() -> None:
    """Pruning a little may help; the target is met to 1e-4 all the same."""
    grid = [0.0, 0.25, 0.5, 0.75]
    curves = {
        "useless": Curve(grid, [10, 10, 10, 10]),
        "better without": Curve(grid, [10, 9, 9.5, 30]),
        "needed": Curve(grid, [10, 20, 40, 80]),
    }
    sizes = {"useless": 50, "better without": 20, "needed": 30}
    for target in np.linspace(0, 0.75, 31):
        result = by_threshold(curves, sizes, float(target))
        mean = sum(sizes[name] * s for name, s in result.sparsities.items()) / 100
        assert mean == pytest.approx(target, abs=1e-4)
        assert result.sparsity == pytest.approx(mean)
        assert result.sparsities["needed"] <= result.sparsities["better without"] + 1e-9
    assert by_threshold(curves, sizes, 0.5).sparsities["useless"] == pytest.approx(0.75, abs=1e-3)


def test_what_cannot_be_reached_is_refused_with_the_largest_that_can() -> None:
    curves = {"a": Curve([0, 0.5], [10, 20]), "b": Curve([0, 0.9], [10, 11])}
    sizes = {"a": 50, "b": 50}
    assert by_threshold(curves, sizes, 0.7).sparsity == pytest.approx(0.7)
    with pytest.raises(UsageError, match=r"sparsity must be at most 0\.7000, .* got 0\.71"):
        by_threshold(curves, sizes, 0.71)
    with pytest.raises(UsageError, match=r"sparsity must be at most .* got 0\.71"):
        by_slope(curves, sizes, 0.71)
    for nonsense in (-0.1, 1.0):
        with pytest.raises(UsageError, match=r"sparsity must be in \[0, 1\), got"):
            by_threshold(curves, sizes, nonsense)


def test_uniform() -> None:
    assert uniform({"a": 3, "b": 5}, 0.4).sparsities == {"a": 0.4, "b": 0.4}


def test_the_slope_in_closed_form() -> None:
    """Losses a ρ²: equal slopes 2 a ρ / |φ| a weight give ρ_φ = μ |φ| / a."""
    grid = np.linspace(0, 1, 2001)
    steep, sizes = {"a": 1.0, "b": 2.0, "c": 8.0}, {"a": 100, "b": 300, "c": 600}
    curves = {name: Curve(list(grid), list(np.exp(k * grid**2))) for name, k in steep.items()}
    result = by_slope(curves, sizes, 0.2)
    mu = 0.2 * 1000 / sum(sizes[n] ** 2 / steep[n] for n in sizes)
    expected = {name: mu * sizes[name] / steep[name] for name in sizes}
    assert result.sparsities == pytest.approx(expected, abs=2e-3)
    assert result.sparsity == pytest.approx(0.2, abs=1e-9)


@settings(max_examples=50)
@given(st.data())
def test_the_slope_costs_no_more_than_any_other_way(data: st.DataObject) -> None:
    """If losses add up: against the paper's way and the uniform one, on convex curves."""
    grid = np.linspace(0, 1, 101)
    count = data.draw(st.integers(2, 5))
    curves, sizes = {}, {}
    for number in range(count):
        k, power = data.draw(st.floats(0.1, 5)), data.draw(st.floats(1, 4))
        curves[str(number)] = Curve(list(grid), list(10 * np.exp(k * grid**power)))
        sizes[str(number)] = data.draw(st.integers(1, 10_000))
    target = data.draw(st.floats(0, 0.99))

    def cost(sparsities: dict[str, float]) -> float:
        return sum(math.log(curves[name](s) / 10) for name, s in sparsities.items())

    best = by_slope(curves, sizes, target)
    assert best.sparsity == pytest.approx(target, abs=1e-4)
    assert cost(best.sparsities) <= cost(by_threshold(curves, sizes, target).sparsities) + 1e-4
    assert cost(best.sparsities) <= cost(uniform(sizes, target).sparsities) + 1e-4


def test_a_bend_is_gone_through_by_its_mean_slope() -> None:
    """A cliff that levels off costs its mean: the other matrix is cheaper, then it goes at once."""
    curves = {
        "cliff": Curve([0, 0.1, 0.9], [1, math.e**0.9, math.e**0.9]),
        "even": Curve([0, 0.9], [1, math.e**0.45]),
    }
    sizes = {"cliff": 100, "even": 100}
    assert by_slope(curves, sizes, 0.45).sparsities == pytest.approx({"cliff": 0, "even": 0.9})
    both = by_slope(curves, sizes, 0.9).sparsities
    assert both == pytest.approx({"cliff": 0.9, "even": 0.9})


@pytest.mark.parametrize("criterion", CRITERIA)
def test_what_is_pruned_stays_pruned_by_every_criterion(criterion: CriterionName) -> None:
    weight = torch.randn(20, 20)
    weight *= Ranking(weight, criterion).keep(0.3)
    for sparsity in (0.3, 0.5):
        keep = Ranking(weight, criterion).keep(sparsity)
        assert int((~keep).sum()) == round(400 * sparsity)
        assert not keep[weight == 0].any()


def test_a_criterion_is_one_function_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def largest_first(weight: torch.Tensor) -> torch.Tensor:
        return -weight.abs()

    monkeypatch.setitem(CRITERIA, "largest-first", largest_first)
    weight = torch.tensor([[1.0, -4.0, 0.0], [3.0, 0.0, -2.0]])
    keep = Ranking(weight, "largest-first").keep(0.5)  # type: ignore[arg-type]
    assert keep.tolist() == [[True, False, False], [True, False, True]]


def test_magnitudes_rank_as_before_there_was_a_table() -> None:
    weight = torch.randn(50, 20).round(decimals=1)  # ties, zeros of both signs
    weight[0, 0], weight[1, 1] = -0.0, 0.0
    expected = torch.argsort(weight.abs().flatten(), stable=True)
    assert torch.equal(pruning_order(weight), expected)
