"""Runs that were never trained: a recipe and a checkpoint that a test writes itself."""

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tests.support.shapes import STORED

from micronet_lm.config import CacheConfig, Recipe, dump_recipe
from micronet_lm.layout import slots

RECIPE = Recipe(model=STORED, cache=CacheConfig(size=20))
SHARES = (5, 3, 2)
"""Tokens of each bin."""


def ones() -> dict[str, np.ndarray[Any, Any]]:
    """Return the tensors of a checkpoint without zeros."""
    held: dict[str, np.ndarray[Any, Any]] = {}
    for slot in slots(RECIPE.model):
        shape = (slot.outputs, slot.inputs)
        held[slot.name] = np.ones(shape[::-1] if slot.transposed else shape, np.float32)
        if slot.bias:
            held[slot.bias] = np.ones(slot.outputs, np.float32)
    return held


def write_run(folder: Path, held: dict[str, np.ndarray[Any, Any]], recipe: Recipe = RECIPE) -> Path:
    """Write a run's recipe and its best checkpoint."""
    folder.mkdir(exist_ok=True)
    (folder / "recipe.yaml").write_text(dump_recipe(recipe), encoding="utf-8")
    save_file(
        {f"model.{name}": tensor for name, tensor in held.items()}, folder / "best.safetensors"
    )
    return folder
