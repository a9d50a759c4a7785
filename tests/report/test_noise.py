"""Which differences of losses are more than noise."""

import numpy as np
import pytest

from micronet_lm.report.noise import paired_change


def losses(tokens: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2.0, 2.0, tokens).astype(np.float32)


def test_a_shift_of_all_tokens_is_clear_however_small() -> None:
    """Paired, what the text itself scatters takes no part."""
    own = losses(50_000)
    change = paired_change("b", own + np.float32(0.002), "a", own)
    assert change.loss == pytest.approx(0.002, rel=1e-3)
    assert change.verdict == "worse"
    assert paired_change("b", own, "a", own + np.float32(0.002)).verdict == "better"


def test_a_shift_below_the_scatter_of_the_difference_is_noise() -> None:
    own = losses(50_000)
    scatter = np.random.default_rng(1).normal(0, 1, len(own))
    change = paired_change("b", own + scatter, "a", own)
    # The means of 50 blocks of 1,000 tokens: an error of 1 / sqrt(50,000), give or take a tenth.
    assert change.error == pytest.approx(1 / 50_000**0.5, rel=0.35)
    scatter -= scatter.mean() - 0.5 * change.error
    assert paired_change("b", own + scatter, "a", own).verdict == "within noise"
    scatter += 3 * change.error
    assert paired_change("b", own + scatter, "a", own).verdict == "worse"


def test_neighbours_that_differ_together_count_as_one_observation() -> None:
    """A difference that is the same over whole passages has a larger error than scattered ones."""
    own = losses(40_000)
    passages = np.repeat(np.random.default_rng(1).normal(0, 1, 40), 1000)
    together = paired_change("b", own + passages, "a", own)
    apart = paired_change("b", own + np.random.default_rng(2).permutation(passages), "a", own)
    assert together.error > 10 * apart.error


def test_equal_models_and_short_texts_are_noise() -> None:
    own = losses(300)
    assert paired_change("b", own, "a", own).verdict == "within noise"
    assert paired_change("b", own[:1] + 1, "a", own[:1]).verdict == "within noise"
