"""The model of a recipe after each of its stages, before any training."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import yaml

from micronet_lm.accounting.compression_plan import evenly
from micronet_lm.accounting.recipe_target import describe
from micronet_lm.accounting.target import Target, usual_bits
from micronet_lm.config import FULL, ModelConfig, PruneConfig, QuantizeConfig, Recipe
from micronet_lm.layout import (
    bias_bits_of,
    bits_of,
    even_sparsity,
    prunable_sizes,
    scale_count,
    slots,
)


def stage_targets(
    recipe: Recipe,
    name: str,
    shares: tuple[int, ...] | None = None,
    shares_from: str = "given",
) -> dict[str, Target]:
    """Return the targets of a recipe's model by the stage that it has gone through, in order.

    The last one is the model that the recipe ends with. Zeros are spread over the tensors as the
    authors spread them where that is known, else evenly.
    """
    target = describe(recipe, name, shares, shares_from)
    found = {"student": target}
    if recipe.prune is not None:
        target = found["prune"] = _pruned(target, recipe.prune)
    if recipe.search is not None:
        fade = recipe.search.fade
        fades = target.fades if fade is None else fade > 0
        target = replace(target, cache=recipe.search.cache_size, fades=fades)
        found["search-cache"] = target
    if recipe.quantize is not None:
        target = found["quantize"] = quantized(target, recipe.quantize)
        if recipe.search is not None and recipe.search.again:
            found["search-again"] = target  # other values of θ and λ cost the same
    return found


def planned_sparsities(shape: ModelConfig, config: PruneConfig) -> dict[str, float]:
    """Return the sparsity of every tensor that a recipe's pruning ends with, by name."""
    sizes = prunable_sizes(shape, config.weights)
    known = authors_sparsities(config.sparsity) if config.weights == "all" else {}
    if known.keys() == sizes.keys():
        return known
    return dict.fromkeys(sizes, even_sparsity(shape, config.sparsity, config.weights))


def authors_sparsities(target: float) -> dict[str, float]:
    """Return the final sparsities of the authors' configuration for a target; empty if none."""
    facts = _facts()
    if target not in facts["targets"]:
        return {}
    number = facts["targets"].index(target)
    return {name: own[number][1] for name, own in facts["tensors"].items()}


def quantized(target: Target, config: QuantizeConfig) -> Target:
    """Return a target with the widths, scales and quantizers of a recipe's quantization."""
    matrices = dict(target.matrices)
    for slot in slots(target.shape):
        bits, bias_bits = bits_of(config, slot), bias_bits_of(config)
        scales = scale_count(config, slot) if bits < FULL else 0
        if slot.bias and bias_bits < FULL:
            scales += 1
        matrices[slot.name] = replace(
            matrices[slot.name],
            bits=bits,
            bias_bits=bias_bits if slot.bias else FULL,
            scales=scales,
        )
    places = frozenset(place for place in config.chosen_places if target.shape.quantizers(place))
    place_bits = config.width_of_activations if places else None
    return replace(
        target,
        matrices=matrices,
        bits=usual_bits(target.shape, matrices, place_bits),
        places=places,
        place_bits=place_bits,
    )


def _pruned(target: Target, config: PruneConfig) -> Target:
    sparsities = planned_sparsities(target.shape, config)
    matrices = dict(target.matrices)
    for slot in slots(target.shape):
        own = sparsities.get(slot.name, 0.0), sparsities.get(slot.bias or "", 0.0)
        if any(own):
            size = slot.outputs * slot.inputs
            zeros, no_bias = round(size * own[0]), round(slot.outputs * own[1])
            matrices[slot.name] = evenly(slot, size - zeros, slot.outputs - no_bias)
    return replace(target, matrices=matrices)


@cache
def _facts() -> Mapping[str, Any]:
    file = resources.files("micronet_lm") / "accounting" / "authors_sparsities.yaml"
    facts: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return facts
