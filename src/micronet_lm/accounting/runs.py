"""A target from a run's folder: the non-zeros are counted in its checkpoint, without torch."""

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from micronet_lm.accounting.described import check_shares
from micronet_lm.accounting.target import Matrix, Rows, Target, usual_bits
from micronet_lm.config import FULL, ModelConfig, Place, QuantizeConfig, Recipe, parse_recipe
from micronet_lm.errors import ConfigError, RunError
from micronet_lm.layout import Slot, bias_bits_of, bits_of, slots

PREFIX = "model."
"""Leads the names of a model's tensors in a checkpoint."""


def is_run(path: Path) -> bool:
    """Whether a folder is that of a run."""
    return (path / "recipe.yaml").is_file()


def check_run(path: Path) -> None:
    """Refuse a folder that is not that of a run."""
    if not is_run(path):
        raise RunError(f"{path} is not a run: it has no recipe.yaml ('micronet train' makes one)")


def checkpoint_file(path: Path, checkpoint: Literal["best", "last"]) -> Path:
    """Name a run's checkpoint, which must be there."""
    file = path / f"{checkpoint}.safetensors"
    if not file.is_file():
        saved = checkpoint == "best" and (path / "last.safetensors").is_file()
        advice = "take --checkpoint last" if saved else "has the run saved a checkpoint yet?"
        raise RunError(f"{file} does not exist; {advice}")
    return file


def run_recipe(path: Path) -> Recipe:
    """Read a run's resolved recipe."""
    file = path / "recipe.yaml"
    try:
        return parse_recipe(yaml.safe_load(file.read_text(encoding="utf-8")), origin="its recipe")
    except (OSError, yaml.YAMLError, UnicodeDecodeError, TypeError, ConfigError) as error:
        why = " ".join(str(error).split())
        raise RunError(f"{file} is damaged ({why}); restore it") from None


def run_corpus(path: Path) -> tuple[Path, str]:
    """Tell where a run's corpus is, and its fingerprint."""
    return run_input(path, "corpus")


def run_input(path: Path, name: str) -> tuple[Path, str]:
    """Tell where something that a run was made with is, and its fingerprint."""
    try:
        reference = json.loads((path / f"{name}.json").read_text("utf-8"))
        return Path(os.path.normpath(path / reference["path"])), str(reference["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}/{name}.json cannot be read ({error}); restore it") from None


def examine(
    path: Path,
    recipe: Recipe,
    shares: tuple[int, ...],
    *,
    shares_from: str = "given",
    checkpoint: Literal["best", "last"] = "best",
) -> Target:
    """Describe the model of a run from what its checkpoint really holds."""
    file = checkpoint_file(path, checkpoint)
    check_shares(shares, recipe.model)
    try:
        with safe_open(file, framework="numpy") as tensors:
            held = set(tensors.keys())
            matrices = {}
            for slot in slots(recipe.model):
                names = [PREFIX + name for name in (slot.name, slot.bias) if name]
                if missing := [name for name in names if name not in held]:
                    raise RunError(f"{file} does not fit its recipe: it has no {missing[0]}")
                weights, *bias = (tensors.get_tensor(name) for name in names)
                matrix = measured(slot, weights, *bias)
                if recipe.quantize is not None:
                    matrix = _as_integers(matrix, slot, recipe.quantize, tensors, held, file)
                matrices[slot.name] = matrix
            places = frozenset(
                place
                for place in Place
                if f"{PREFIX}activations.{place}" in held and recipe.model.quantizers(place)
            )
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise RunError(f"{file} is damaged ({error}); train again or restore a copy") from None
    place_bits = recipe.quantize.width_of_activations if recipe.quantize and places else None
    return Target(
        name=str(path),
        shape=recipe.model,
        matrices=matrices,
        cache=recipe.cache.size if recipe.cache else 0,
        shares=shares,
        shares_from=shares_from,
        bits=usual_bits(recipe.model, matrices, place_bits),
        places=places,
        place_bits=place_bits,
    )


def counted_shares(ids: NDArray[np.unsignedinteger], shape: ModelConfig) -> tuple[int, ...]:
    """Count the tokens of a test split that fall into each bin."""
    bins = np.searchsorted(shape.cutoffs, ids, side="right")
    return tuple(np.bincount(bins, minlength=len(shape.cutoffs) + 1).tolist())


def _as_integers(
    matrix: Matrix,
    slot: Slot,
    config: QuantizeConfig,
    tensors: Any,
    held: set[str],
    file: Path,
) -> Matrix:
    """Note the bits of a matrix and its bias, and count the steps that come with them."""
    bits = {slot.name: bits_of(config, slot)}
    if slot.bias:
        bits[slot.bias] = bias_bits_of(config)
    steps = 0
    for name, own in bits.items():
        if own == FULL:
            continue
        if f"{PREFIX}{name}.steps" not in held:
            raise RunError(
                f"{file} holds {name} as floats: it is what training goes on with; count the "
                "run's best checkpoint, which has its integers"
            )
        steps += len(tensors.get_tensor(f"{PREFIX}{name}.steps"))
        largest = int(np.abs(tensors.get_tensor(PREFIX + name).astype(np.int32)).max(initial=0))
        if largest >= 1 << (own - 1):
            raise RunError(
                f"{file} is damaged: {name} has the integer {largest}, too large for {own} bits"
            )
    return replace(
        matrix, bits=bits[slot.name], bias_bits=bits.get(slot.bias or "", FULL), scales=steps
    )


def measured(
    slot: Slot, weights: NDArray[np.generic], bias: NDArray[np.generic] | None = None
) -> Matrix:
    """Count the non-zeros of a matrix row by row."""
    weights = weights.T if slot.transposed else weights
    if weights.shape != (slot.outputs, slot.inputs):
        raise RunError(
            f"{slot.name} has the shape {weights.shape}, but the recipe makes it "
            f"{(slot.outputs, slot.inputs)}"
        )
    nonzeros = np.count_nonzero(weights, axis=1)
    biased = np.zeros(len(nonzeros), bool) if bias is None else np.asarray(bias) != 0
    alike = Counter(zip(nonzeros.tolist(), biased.tolist(), strict=True))
    return Matrix(
        name=slot.name,
        outputs=slot.outputs,
        inputs=slot.inputs,
        rows=tuple(
            Rows(count=number, nonzeros=nonzero, biased=has)
            for (nonzero, has), number in sorted(alike.items())
        ),
        has_bias=bias is not None,
    )
