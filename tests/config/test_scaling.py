"""What is counted in steps follows a changed number of steps; what is set wins."""

from typing import Any

import pytest

from micronet_lm.config import (
    load_recipe,
    load_scaled,
    merge_recipe,
    scaled_to_steps,
    scaling_sentence,
)
from micronet_lm.errors import ConfigError


def test_keys_follow_the_steps() -> None:
    """Of preset demo: 600 steps, warm-up 60, evaluated and saved every 100."""
    recipe, scaled = load_scaled("demo", {"train.steps": 30})
    assert scaled == {"train.warmup": 3, "train.evaluate_every": 5, "train.save_every": 5}
    assert (recipe.train.steps, recipe.train.warmup, recipe.train.save_every) == (30, 3, 5)
    assert scaling_sentence(scaled).startswith("In proportion to the steps: train.warmup 3, ")
    assert load_scaled("demo", {"train.steps": 6000})[0].train.warmup == 600


@pytest.mark.parametrize("overrides", [{}, {"train.steps": 600}, {"model.width": 32}])
def test_nothing_follows_what_stays(overrides: dict[str, Any]) -> None:
    recipe, scaled = load_scaled("demo", overrides)
    assert scaled == {}
    assert recipe == load_recipe("demo", overrides)


def test_what_is_set_wins() -> None:
    recipe, scaled = load_scaled("demo", {"train.steps": 30, "train.warmup": 0})
    assert "train.warmup" not in scaled
    assert recipe.train.warmup == 0


def test_a_warm_up_stays_shorter_than_the_run() -> None:
    assert load_scaled("demo", {"train.steps": 1})[0].train.warmup == 0
    assert load_scaled("demo", {"train.steps": 2})[0].train.warmup == 1


def test_the_steps_of_pruning_have_keys_of_their_own() -> None:
    """Of demo/micronet: 100 steps, 60 of them with removals, one every 10."""
    recipe, scaled = load_scaled("demo/micronet", {"prune.train.steps": 10})
    assert recipe.prune is not None
    assert recipe.prune.train is not None
    assert (recipe.prune.steps, recipe.prune.every, recipe.prune.train.warmup) == (6, 1, 1)
    assert "train.warmup" not in scaled
    _, scaled = load_scaled("demo/micronet", {"train.steps": 40})
    assert not any(key.startswith("prune.") for key in scaled)
    alike = merge_recipe(load_recipe("demo/micronet"), {"prune.train": None})
    assert scaled_to_steps(alike, {"train.steps": 40})["prune.steps"] == 6


def test_what_is_wrong_is_still_said() -> None:
    with pytest.raises(ConfigError, match=r"train\.steps must be at least 1, got 0"):
        load_scaled("demo", {"train.steps": 0})
    with pytest.raises(ConfigError, match=r"train\.steps must be a whole number, got 'many'"):
        load_scaled("demo", {"train.steps": "many"})
