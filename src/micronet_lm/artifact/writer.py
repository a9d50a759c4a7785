"""Write a packed file: integers at their true width or as codes, zeros as a mask where shorter."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.bits import pack_integers, pack_mask
from micronet_lm.artifact.checks import check_model
from micronet_lm.artifact.coded_integers import coded_integers
from micronet_lm.artifact.coded_words import coded_words
from micronet_lm.artifact.container import write_container
from micronet_lm.artifact.metadata import from_json, to_json
from micronet_lm.artifact.ngram_parts import table_parts
from micronet_lm.artifact.packed_model import PackedModel, Weights
from micronet_lm.config import FULL
from micronet_lm.errors import ArtifactError
from micronet_lm.files import replacing

Parts = dict[str, NDArray[Any]]


def write_packed(path: Path, model: PackedModel, *, with_checksum: bool = True) -> None:
    """Write a model to a file that appears complete or not at all.

    A file without a checksum is as version 0.1 wrote it.
    """
    codes = _codes(model) if model.coded else {}
    try:
        check_model(model)
        metadata = to_json(model, codes)
        from_json(metadata)  # do not write what a reader would refuse
    except ArtifactError as error:
        raise ArtifactError(f"{path} cannot be written from this model: {error}") from None
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"the model card cannot be written as JSON: {error}") from None
    parts: Parts = {}
    for name in sorted(model.tensors):
        parts.update(_weight_parts(name, model.tensors[name], codes.get(name)))
    words = vocabulary_bytes(model.words)
    short = coded_words(model.words) if model.coded else words
    parts |= {"vocabulary": words} if len(short) >= len(words) else {"vocabulary.coded": short}
    if model.spelling is not None:
        parts["spelling"] = np.frombuffer(model.spelling.data, np.uint8)
    if model.cache is not None:
        parts["cache.theta"] = np.array([model.cache.theta], np.float32)
        parts["cache.lam"] = np.array([model.cache.lam], np.float32)
    for place, rows in model.activations.items():
        parts[f"activations.{place}"] = rows
    if model.ngrams is not None:
        parts.update(table_parts(model.ngrams))
    plain = {name: np.ascontiguousarray(part) for name, part in parts.items()}
    try:
        with replacing(path) as temporary:
            write_container(temporary, plain, metadata, with_checksum=with_checksum)
    except OSError as error:  # for example: the disk is full
        raise ArtifactError(f"{path} cannot be written: {error.strerror}") from None


def _codes(model: PackedModel) -> Parts:
    """Return the integers that are shorter as prefix codes, by the names of their tensors."""
    found: Parts = {}
    for name, weights in model.tensors.items():
        if weights.scales is not None and np.issubdtype(weights.values.dtype, np.integer):
            codes = coded_integers(weights.values, weights.bits)
            plain = weights.stored_bits - FULL * weights.scales.size
            if codes is not None and 8 * len(codes) < plain:
                found[name] = codes
    return found


def _weight_parts(name: str, weights: Weights, codes: NDArray[np.uint8] | None) -> Parts:
    flat: NDArray[Any] = weights.values.reshape(-1)
    parts: Parts = {}
    if codes is not None and weights.scales is not None:
        return {f"{name}.coded": codes, f"{name}.steps": weights.scales}
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
