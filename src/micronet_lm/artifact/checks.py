"""Checks of a packed model, before it is written and after it is read."""

import numpy as np

from micronet_lm.artifact.bits import largest
from micronet_lm.artifact.metadata import BITS, LARGEST_CACHE, refuse
from micronet_lm.artifact.ngram_parts import check_table
from micronet_lm.artifact.packed_model import CacheParameters, Floats, PackedModel, Weights
from micronet_lm.artifact.scales import are_scales
from micronet_lm.config import FULL, Place
from micronet_lm.layout import norm_names, tensor_shapes
from micronet_lm.strict_json import short


def check_model(model: PackedModel) -> None:
    """Refuse a model that docs/format.md does not allow."""
    wanted = tensor_shapes(model.shape)
    for name in sorted(wanted.keys() ^ model.tensors.keys()):
        refuse(f"{'it lacks' if name in wanted else 'it has an unknown'} tensor {name}")
    for name, shape in wanted.items():
        found = model.tensors[name].values.shape
        if found != shape:
            refuse(f"its tensor {name} has the shape {list(found)} instead of {list(shape)}")
        check_weights(name, model.tensors[name])
    for name in norm_names(model.shape):
        if model.tensors[name].bits != FULL or model.tensors[name].sparse:
            refuse(f"its tensor {name} must be dense and in 32 bits, as it belongs to a LayerNorm")
    if len(model.words) != model.shape.bounds[-1]:
        refuse(f"it has {len(model.words)} words for a vocabulary of {model.shape.bounds[-1]}")
    check_words(model)
    if model.cache is not None:
        check_cache(model.cache)
    if model.ngrams is not None:
        check_table(model.ngrams, model.shape.bounds[-1])
    if (model.activation_bits is None) != (not model.activations):
        refuse("activation_bits and quantized activations come together or not at all")
    for place, rows in model.activations.items():
        check_activations(place, rows, model.shape.quantizers(place), model.activation_bits)


def check_weights(name: str, weights: Weights) -> None:
    """Refuse values, integers and scales that the format does not allow."""
    values, scales, bits = weights.values, weights.scales, weights.bits
    if scales is None:
        if bits != FULL or values.dtype != np.float32:
            refuse(f"its tensor {name} of {bits} bits and type {values.dtype} has no scales")
        if not np.isfinite(values).all():
            refuse(f"its tensor {name} has values that are not finite")
        return
    if bits not in BITS or values.dtype != np.int16:
        refuse(
            f"its tensor {name} must be int16 of 2 to 16 bits, got {values.dtype} of {bits} bits"
        )
    limit = largest(bits)
    if values.size and not -limit <= int(values.min()) <= int(values.max()) <= limit:
        refuse(f"its tensor {name} has integers outside −{limit} to {limit}, the {bits}-bit range")
    if scales.dtype != np.float32 or scales.shape not in ((1,), values.shape[:1]):
        refuse(f"its tensor {name} must have one scale, or one per row, got {list(scales.shape)}")
    if not are_scales(scales, bits):
        refuse(f"its tensor {name} has scales that are not finite, negative, too fine or too large")


def check_activations(place: Place, rows: Floats, count: int, bits: int | None) -> None:
    """Refuse ranges and scales of activations that the format does not allow."""
    if rows.dtype != np.float32 or rows.shape != (count, 2):
        refuse(f"its activations.{place} have the shape {list(rows.shape)} instead of [{count}, 2]")
    if not count:
        refuse(f"its activations.{place} must be absent: the model has no such place")
    if not (np.isfinite(rows[:, 0]).all() and (rows[:, 0] >= 0).all()):
        refuse(f"its activations.{place} have ranges that are negative or not finite")
    if bits is None or not are_scales(np.ascontiguousarray(rows[:, 1]), bits):
        refuse(f"its activations.{place} have scales that are not finite, too fine or too large")


def check_cache(cache: CacheParameters) -> None:
    """Refuse cache parameters outside their bounds."""
    if not 1 <= cache.size <= LARGEST_CACHE:
        refuse(f"its cache.size must be from 1 to {LARGEST_CACHE}, got {cache.size}")
    if not 0 <= cache.ramp <= cache.size:
        refuse(f"its cache.ramp must be from 0 to cache.size {cache.size}, got {cache.ramp}")
    if not 0 <= cache.fade <= LARGEST_CACHE:
        refuse(f"its cache.fade must be from 0 to {LARGEST_CACHE}, got {cache.fade}")
    theta, lam = np.float32(cache.theta), np.float32(cache.lam)
    if not (np.isfinite(theta) and theta > 0):
        refuse(f"its cache's θ must be above 0, got {theta}")
    if not 0 < lam < 1:
        refuse(f"its cache's λ must be between 0 and 1, got {lam}")


def check_words(model: PackedModel) -> None:
    """Refuse words that are empty, contain a line feed, are not UTF-8, or occur twice."""
    seen: set[str] = set()
    for word in model.words:
        if not word or "\n" in word or word in seen:
            refuse(f"its word {short(word)} is empty, contains a line feed or occurs twice")
        seen.add(word)
    try:
        "".join(seen).encode("utf-8")
    except UnicodeEncodeError as error:
        refuse(f"its words contain {short(error.object[error.start])}, which is not UTF-8")
