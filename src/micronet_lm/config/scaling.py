"""Keys that follow the number of steps when only that is changed on the command line."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from micronet_lm.config.loading import flat_keys, load_recipe
from micronet_lm.config.sections import Recipe
from micronet_lm.errors import ConfigError

_PRUNING = ("prune.steps", "prune.every")
_FOLLOW = {
    "train.steps": ("train.warmup", "train.evaluate_every", "train.save_every"),
    "prune.train.steps": (
        "prune.train.warmup",
        "prune.train.evaluate_every",
        "prune.train.save_every",
        *_PRUNING,
    ),
}
"""What is measured in steps of a training, by the key of that training's number of steps."""


def load_scaled(name: str, overrides: Mapping[str, Any]) -> tuple[Recipe, dict[str, int]]:
    """Load a recipe with overrides; return it and what followed a changed number of steps."""
    scaled: dict[str, int] = {}
    if overrides.keys() & _FOLLOW.keys():
        with suppress(ConfigError):  # an override may put it right; if none does, it is said below
            scaled = scaled_to_steps(load_recipe(name), overrides)
    return load_recipe(name, {**scaled, **overrides}), scaled


def scaled_to_steps(recipe: Recipe, overrides: Mapping[str, Any]) -> dict[str, int]:
    """Return what `overrides` of a number of steps changes beside it, in the same proportion.

    Keys that are overridden themselves, or that the recipe leaves open, are not among them.
    """
    values = flat_keys(recipe.model_dump())
    scaled: dict[str, int] = {}
    for steps, followers in _FOLLOW.items():
        before, after = values.get(steps), overrides.get(steps)
        if not isinstance(before, int) or not isinstance(after, int) or after < 1:
            continue  # nothing to scale by; what is wrong with the value is said elsewhere
        if steps == "train.steps" and values.get("prune.train.steps") is None:
            followers = (*followers, *_PRUNING)  # the pruning takes as many steps
        for key in followers:
            old = values.get(key)
            if not old or key in overrides:  # left open, none, or set by the user
                continue
            new = max(1, round(old * after / before))
            # A warm-up must be shorter than the run.
            new = min(new, after - 1) if key.endswith(".warmup") else new
            if new != old:
                scaled[key] = new
    return scaled


def scaling_sentence(scaled: Mapping[str, int]) -> str:
    """Return a sentence on the keys that were scaled with the number of steps."""
    keys = ", ".join(f"{key} {value}" for key, value in scaled.items())
    return f"In proportion to the steps: {keys} (set them to have other values)."
