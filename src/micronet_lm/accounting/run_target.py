"""A target from a run folder: non-zeros are counted in its checkpoint, without torch."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from micronet_lm.accounting.recipe_target import check_shares
from micronet_lm.accounting.target import Matrix, Rows, Target, usual_bits
from micronet_lm.config import FULL, ModelConfig, Place, QuantizeConfig, Recipe
from micronet_lm.errors import RunError
from micronet_lm.layout import Slot, bias_bits_of, bits_of, slots
from micronet_lm.runs import PREFIX, CheckpointReader, Which, checkpoint_file, open_checkpoint


def examine(
    path: Path,
    recipe: Recipe,
    shares: tuple[int, ...],
    *,
    shares_from: str = "given",
    checkpoint: Which = "best",
) -> Target:
    """Return the target of a run's model from the contents of its checkpoint."""
    file = checkpoint_file(path, checkpoint)
    check_shares(shares, recipe.model)
    with open_checkpoint(file) as reader:
        matrices = {}
        for slot in slots(recipe.model):
            names = [name for name in (slot.name, slot.bias) if name]
            matrix = measured(slot, *(reader.model_tensor(name) for name in names))
            if recipe.quantize is not None:
                matrix = _as_integers(matrix, slot, recipe.quantize, reader)
            matrices[slot.name] = matrix
        places = frozenset(
            place
            for place in Place
            if f"{PREFIX}activations.{place}" in reader.names and recipe.model.quantizers(place)
        )
    place_bits = recipe.quantize.width_of_activations if recipe.quantize and places else None
    return Target(
        name=str(path),
        shape=recipe.model,
        matrices=matrices,
        cache=recipe.cache.size if recipe.cache else 0,
        fades=recipe.cache is not None and recipe.cache.fade > 0,
        shares=shares,
        shares_from=shares_from,
        bits=usual_bits(recipe.model, matrices, place_bits),
        places=places,
        place_bits=place_bits,
    )


def counted_shares(ids: NDArray[np.unsignedinteger], shape: ModelConfig) -> tuple[int, ...]:
    """Return the number of a test split's tokens in each bin."""
    bins = np.searchsorted(shape.cutoffs, ids, side="right")
    return tuple(np.bincount(bins, minlength=len(shape.cutoffs) + 1).tolist())


def _as_integers(
    matrix: Matrix, slot: Slot, config: QuantizeConfig, reader: CheckpointReader
) -> Matrix:
    """Return the matrix with its bits, its bias's bits and its number of scales."""
    bits = {slot.name: bits_of(config, slot)}
    if slot.bias:
        bits[slot.bias] = bias_bits_of(config)
    scales = 0
    for name, own in bits.items():
        if own == FULL:
            continue
        if f"{PREFIX}{name}.steps" not in reader.names:
            raise RunError(
                f"{reader.path} has {name} as floats, for resuming the training: count the run's "
                "best checkpoint, which has integers"
            )
        scales += len(reader.model_tensor(f"{name}.steps"))
        largest = int(np.abs(reader.model_tensor(name).astype(np.int32)).max(initial=0))
        if largest >= 1 << (own - 1):
            raise RunError(
                f"{reader.path} is damaged: {name} has the integer {largest}, too large for "
                f"{own} bits"
            )
    return replace(
        matrix, bits=bits[slot.name], bias_bits=bits.get(slot.bias or "", FULL), scales=scales
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
