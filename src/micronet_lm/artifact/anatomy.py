"""Bits of a packed model by tensor and by part, and what stayed in fp32."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from micronet_lm.artifact.container import Container
from micronet_lm.artifact.packed_model import PackedModel, Weights
from micronet_lm.artifact.packed_target import part_bytes
from micronet_lm.config import FULL
from micronet_lm.ngrams import NgramTable

PARTS = {
    "embedding.tables": "tables",
    "embedding.projections": "projections",
    "softmax.projections": "projections",
    "softmax.tail_weight": "entries for other bins",
    "softmax": "softmax biases",
    "positions": "positions",
    "norm": "LayerNorm",
    "attention": "attention",
    "inner": "feed-forward",
    "outer": "feed-forward",
}
"""Part of a tensor: that of the first key contained in its name."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A tensor, or several shown together."""

    name: str
    part: str
    shape: tuple[int, ...]
    bits: int
    """Bits per element."""
    size: int
    nonzeros: int
    sparse: bool
    stored: int
    """Bits in the file: elements, mask and scales."""
    scales: int
    """Bits of its scales alone."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values; scales have the name they have in the file."""
        own = {("steps" if key == "scales" else key): value for key, value in vars(self).items()}
        return {**own, "density": self.density}

    @property
    def density(self) -> float:
        """Share of elements that are not zero."""
        return self.nonzeros / self.size


def describe_model(model: PackedModel) -> dict[str, Any]:
    """Return what a model holds, and where its bits are, as plain values."""
    listed = pieces(model)
    return {
        "model": model.shape.model_dump(mode="json", exclude={"dropout"}),
        "cache": vars(model.cache) if model.cache else None,
        "ngrams": model.ngrams and {"share": model.ngrams.share, **model.ngrams.described()},
        "tokenizer": model.tokenizer or None,
        "activation_bits": model.activation_bits,
        "bits": sum(piece.stored for piece in listed),
        "tensors": [piece.as_json() for piece in listed],
        "parts": by_part(listed),
        "fp32": left_in_fp32(listed),
        "card": dict(model.card),
    }


def file_bytes(container: Container) -> dict[str, int]:
    """Return the bytes of a packed file by what they hold."""
    name = "vocabulary" if "vocabulary" in container.parts else "vocabulary.coded"
    words, weights = container.parts[name].bytes, part_bytes(container)
    spelling = container.parts["spelling"].bytes if "spelling" in container.parts else 0
    return {
        "bytes": container.bytes,
        "header": container.bytes - words - spelling - weights,
        "vocabulary": words,
        "spelling": spelling,
        "weights": weights,
    }


def pieces(model: PackedModel) -> list[Piece]:
    """Return every tensor that a model stores, without its words."""
    found = [_piece(name, weights) for name, weights in model.tensors.items()]
    for place, rows in model.activations.items():
        found.append(_floats(f"activations.{place}", "activations", rows.shape))
    if model.cache is not None:
        found += [_floats(f"cache.{key}", "cache", (1,)) for key in ("theta", "lam")]
    if model.ngrams is not None:
        floats = (len(model.ngrams.values) + 1,)
        found += [_table(model.ngrams), _floats("ngrams.values, .share", "n-grams", floats)]
    return found


def by_part(listed: Iterable[Piece]) -> dict[str, int]:
    """Return the bits of each part, the largest first."""
    sums: dict[str, int] = {}
    for piece in listed:
        sums[piece.part] = sums.get(piece.part, 0) + piece.stored
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def left_in_fp32(listed: Iterable[Piece]) -> dict[str, int]:
    """Return the bits of all 32-bit numbers by part, scales apart, the largest first."""
    sums: dict[str, int] = {}
    for piece in listed:
        if piece.bits == FULL:
            sums[piece.part] = sums.get(piece.part, 0) + piece.stored
        elif piece.scales:
            sums["steps"] = sums.get("steps", 0) + piece.scales
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _piece(name: str, weights: Weights) -> Piece:
    return Piece(
        name=name,
        part=next(part for key, part in PARTS.items() if key in name),
        shape=weights.values.shape,
        bits=weights.bits,
        size=weights.size,
        nonzeros=weights.nonzeros,
        sparse=weights.sparse,
        stored=weights.stored_bits,
        scales=0 if weights.scales is None else FULL * weights.scales.size,
    )


def _table(table: NgramTable) -> Piece:
    """Return the words, codes and masks of a table of n-grams; its floats are another piece."""
    size = len(table.unigrams) + sum(table.entries)
    return Piece(
        name="ngrams",
        part="n-grams",
        shape=(size,),
        bits=table.bits,
        size=size,
        nonzeros=size,
        sparse=False,
        stored=table.stored_bits - FULL * (len(table.values) + 1),
        scales=0,
    )


def _floats(name: str, part: str, shape: tuple[int, ...]) -> Piece:
    size = 1
    for number in shape:
        size *= number
    return Piece(
        name=name,
        part=part,
        shape=shape,
        bits=FULL,
        size=size,
        nonzeros=size,
        sparse=False,
        stored=FULL * size,
        scales=0,
    )
