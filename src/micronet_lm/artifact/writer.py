"""Write a packed file: integers at their true width, zeros as a mask where that is shorter."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from micronet_lm.artifact.bits import pack_integers, pack_mask
from micronet_lm.artifact.checks import check_model
from micronet_lm.artifact.metadata import from_json, to_json
from micronet_lm.artifact.packed_model import PackedModel, Weights
from micronet_lm.config import FULL
from micronet_lm.errors import ArtifactError
from micronet_lm.files import replacing

Parts = dict[str, NDArray[Any]]


def write_packed(path: Path, model: PackedModel) -> None:
    """Write a model to a file that appears complete or not at all."""
    try:
        check_model(model)
        metadata = to_json(model)
        from_json(metadata)  # do not write what a reader would refuse
    except ArtifactError as error:
        raise ArtifactError(f"{path} cannot be written from this model: {error}") from None
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"the model card cannot be written as JSON: {error}") from None
    parts: Parts = {}
    for name in sorted(model.tensors):
        parts.update(_weight_parts(name, model.tensors[name]))
    parts["vocabulary"] = vocabulary_bytes(model.words)
    if model.cache is not None:
        parts["cache.theta"] = np.array([model.cache.theta], np.float32)
        parts["cache.lam"] = np.array([model.cache.lam], np.float32)
    for place, rows in model.activations.items():
        parts[f"activations.{place}"] = rows
    plain = {name: np.ascontiguousarray(part) for name, part in parts.items()}
    try:
        with replacing(path) as temporary:
            save_file(plain, temporary, metadata={"micronet": metadata})
    except SafetensorError as error:  # for example: the disk is full
        raise ArtifactError(f"{path} cannot be written: {error}") from None


def _weight_parts(name: str, weights: Weights) -> Parts:
    flat: NDArray[Any] = weights.values.reshape(-1)
    parts: Parts = {}
    if weights.sparse:
        mask = flat != 0
        parts[f"{name}.mask"] = pack_mask(mask)
        flat = flat[mask]
    if weights.bits < FULL and weights.scales is not None:
        parts[f"{name}.integers"] = pack_integers(flat, weights.bits)
        parts[f"{name}.steps"] = weights.scales
    elif weights.sparse:
        parts[f"{name}.values"] = flat
    else:
        parts[name] = weights.values
    return parts


def vocabulary_bytes(words: Sequence[str]) -> NDArray[np.uint8]:
    """Return the words as stored in the file: UTF-8, each followed by a line feed."""
    return np.frombuffer("".join(f"{word}\n" for word in words).encode(), np.uint8)
