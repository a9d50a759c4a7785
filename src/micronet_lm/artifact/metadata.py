"""The JSON object in a packed file's header: written, and read strictly."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

from micronet_lm.artifact.packed_model import CacheParameters, PackedModel, Weights
from micronet_lm.config import FULL, LARGEST_SIZE, ModelConfig
from micronet_lm.corpus.tokenizers import TOKENIZERS
from micronet_lm.errors import ArtifactError
from micronet_lm.layout import norm_names, tensor_shapes
from micronet_lm.strict_json import parse_json, short

FORMAT = 1
"""Version of the format of a model without a table of n-grams."""
WITH_NGRAMS = 2
"""Version of the format of a model with one."""
WITH_CODES = 3
"""Version of the format of a model whose words and integers may be prefix codes."""
WITH_FADE = 4
"""Version of the format of a model with a cache whose votes fade."""
LARGEST_CACHE = 2**24
LONGEST_METADATA = 4 << 20
"""Most bytes of the metadata with the card."""
DEEPEST_CARD = 64
"""Most values within values of the card."""
LARGEST_POWER = 300
"""Numbers are below 10 to this power, so that no reader makes infinity of one."""
LONGEST_NGRAM = 8
CODE_BITS = range(2, 9)
"""Allowed widths of the codes of n-grams' values."""
BITS = range(2, 17)
"""Allowed widths of integers."""

_SIZES = ("vocabulary", "width", "layers", "heads", "key_width", "value_width", "ffn_width")
_SHAPE = ("vocabulary", "cutoffs", "embedding_widths", *_SIZES[1:], "context")


@dataclass(frozen=True, kw_only=True)
class Described:
    """Description of a weight tensor."""

    shape: tuple[int, ...]
    bits: int
    nonzeros: int | None
    """Number of non-zeros of a sparse tensor; None for a dense one."""


@dataclass(frozen=True, kw_only=True)
class DescribedCache:
    """Description of the cache."""

    size: int
    ramp: int
    fade: int
    """0 if votes do not fade."""


@dataclass(frozen=True, kw_only=True)
class DescribedNgrams:
    """Description of the table of n-grams."""

    bits: int
    entries: tuple[int, ...]
    """Number of entries of each order from 2 on."""


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """The metadata of a packed file."""

    model: ModelConfig
    cache: DescribedCache | None
    tokenizer: str
    activation_bits: int | None
    tensors: Mapping[str, Described]
    card: Mapping[str, Any]
    ngrams: DescribedNgrams | None = None
    coded: bool = False
    """Whether words and integers may be prefix codes."""


def to_json(model: PackedModel, coded: Collection[str] = ()) -> str:
    """Return the metadata of a model; the same model gives the same text.

    `coded` names the tensors whose integers are prefix codes.
    """
    shape = model.shape.model_dump(mode="json")
    ngrams = model.ngrams.described() if model.ngrams else None
    version = _version(model)
    record = {
        "format": version,
        "model": {key: shape[key] for key in _SHAPE},
        "cache": model.cache and _described_cache(model.cache),
        "tokenizer": model.tokenizer,
        "activation_bits": model.activation_bits,
        "tensors": {
            name: _described(model.tensors[name], name in coded) for name in sorted(model.tensors)
        },
        **({} if version == FORMAT else {"ngrams": ngrams}),
        **({"coded": model.coded} if version == WITH_FADE else {}),
        "card": dict(model.card),
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _version(model: PackedModel) -> int:
    """Return the oldest version of the format that can say everything of a model."""
    if model.cache and model.cache.fade:
        return WITH_FADE
    if model.coded:
        return WITH_CODES
    return WITH_NGRAMS if model.ngrams else FORMAT


def _described_cache(cache: CacheParameters) -> dict[str, int]:
    fade = {"fade": cache.fade} if cache.fade else {}
    return {"size": cache.size, "ramp": cache.ramp, **fade}


def _described(weights: Weights, coded: bool) -> dict[str, Any]:
    return {
        "shape": list(weights.values.shape),
        "bits": weights.bits,
        "nonzeros": weights.nonzeros if weights.sparse and not coded else None,
    }


def from_json(text: str) -> Metadata:
    """Parse the metadata; refuse everything that docs/format.md does not allow."""
    record = strict_json(text, "the metadata")
    if not isinstance(record, dict):
        refuse("the metadata is not a JSON object")
    version = record.get("format")
    if type(version) is not int or version not in (FORMAT, WITH_NGRAMS, WITH_CODES, WITH_FADE):
        refuse(f"its format must be 1, 2, 3 or 4, got {short(version)}")
    keys = ("format", "model", "cache", "tokenizer", "activation_bits", "tensors", "card")
    more = () if version == FORMAT else ("ngrams",)
    last = ("coded",) if version == WITH_FADE else ()
    _check_keys(record, (*keys, *more, *last), "the metadata")
    coded = record["coded"] if last else version == WITH_CODES
    if type(coded) is not bool:
        refuse(f"its coded must be true or false, got {short(coded)}")
    shape = _shape(record["model"])
    if record["tokenizer"] not in TOKENIZERS:
        refuse(
            f"its tokenizer must be one of {', '.join(TOKENIZERS)}, got "
            f"{short(record['tokenizer'])}"
        )
    bits = record["activation_bits"]
    if bits is not None and (type(bits) is not int or bits not in BITS):
        refuse(f"its activation_bits must be 2 to 16 or null, got {short(bits)}")
    if not isinstance(record["card"], dict):
        refuse("its card is not a JSON object")
    _check_depth(record["card"])
    return Metadata(
        model=shape,
        cache=_cache(record["cache"], fades=version == WITH_FADE),
        tokenizer=record["tokenizer"],
        activation_bits=bits,
        tensors=_tensors(record["tensors"], shape),
        card=record["card"],
        ngrams=_ngrams(record["ngrams"], may_lack=version >= WITH_CODES) if more else None,
        coded=coded,
    )


def strict_json(text: str, what: str) -> Any:
    """Parse JSON of a packed file; refuse what docs/format.md does not allow."""
    try:
        return parse_json(text, what, power=LARGEST_POWER)
    except ValueError as error:
        refuse(str(error))


def _check_depth(card: Any) -> None:
    level, depth = [card], 0
    while level:
        if depth > DEEPEST_CARD:
            refuse(f"its card has values within values more than {DEEPEST_CARD} deep")
        inner = (value for value in level if isinstance(value, dict | list))
        level = [
            v for value in inner for v in (value.values() if isinstance(value, dict) else value)
        ]
        depth += 1


def _shape(record: Any) -> ModelConfig:
    if not isinstance(record, dict):
        refuse("its model is not a JSON object")
    _check_keys(record, _SHAPE, "its model")
    for key in (*_SIZES, "context"):
        _check_size(record[key], f"model.{key}")
    for key in ("cutoffs", "embedding_widths"):
        if not isinstance(record[key], list):
            refuse(f"its model.{key} is not a list")
        for number in record[key]:
            _check_size(number, f"model.{key}")
    if record["vocabulary"] < 2:
        refuse("its model.vocabulary must be at least 2, got 1")
    if len(record["embedding_widths"]) != len(record["cutoffs"]) + 1:
        refuse("its model.embedding_widths must have one entry more than model.cutoffs")
    if any(a >= b for a, b in pairwise((0, *record["cutoffs"], record["vocabulary"]))):
        refuse("its model.cutoffs must increase from above 0 to below the vocabulary")
    return ModelConfig(**record)


def _cache(record: Any, *, fades: bool) -> DescribedCache | None:
    if record is None and not fades:
        return None
    if not isinstance(record, dict):
        refuse(f"its cache is not a JSON object{'' if fades else ' or null'}")
    _check_keys(record, ("size", "ramp", *(("fade",) if fades else ())), "its cache")
    size = _check_size(record["size"], "cache.size", LARGEST_CACHE)
    ramp = record["ramp"]
    if type(ramp) is not int or not 0 <= ramp <= size:
        refuse(f"its cache.ramp must be from 0 to cache.size {size}, got {short(ramp)}")
    fade = _check_size(record["fade"], "cache.fade", LARGEST_CACHE) if fades else 0
    return DescribedCache(size=size, ramp=ramp, fade=fade)


def _ngrams(record: Any, *, may_lack: bool) -> DescribedNgrams | None:
    if record is None and may_lack:
        return None
    if not isinstance(record, dict):
        refuse("its ngrams are not a JSON object")
    _check_keys(record, ("order", "bits", "entries"), "its ngrams")
    order, bits, entries = record["order"], record["bits"], record["entries"]
    if type(order) is not int or not 2 <= order <= LONGEST_NGRAM:
        refuse(f"its ngrams.order must be from 2 to {LONGEST_NGRAM}, got {short(order)}")
    if type(bits) is not int or bits not in CODE_BITS:
        refuse(f"its ngrams.bits must be from 2 to 8, got {short(bits)}")
    if not isinstance(entries, list) or len(entries) != order - 1:
        refuse(f"its ngrams.entries must be {order - 1} numbers, got {short(entries)}")
    for number in entries:
        _check_size(number, "ngrams.entries")
    return DescribedNgrams(bits=bits, entries=tuple(entries))


def _tensors(record: Any, shape: ModelConfig) -> dict[str, Described]:
    if not isinstance(record, dict):
        refuse("its tensors are not a JSON object")
    if shape.layers > len(record):  # check before making names for all layers that it claims
        refuse(f"its {shape.layers} layers have too few tensors")
    wanted = tensor_shapes(shape)
    _check_keys(record, tuple(wanted), "its tensors")
    norms = set(norm_names(shape))
    return {name: _tensor(name, record[name], wanted[name], name in norms) for name in wanted}


def _tensor(name: str, record: Any, shape: tuple[int, ...], plain: bool) -> Described:
    if not isinstance(record, dict):
        refuse(f"its tensor {name} is not described by a JSON object")
    _check_keys(record, ("shape", "bits", "nonzeros"), f"its tensor {name}")
    found, bits, nonzeros = record["shape"], record["bits"], record["nonzeros"]
    integers = isinstance(found, list) and all(type(number) is int for number in found)
    if not integers or tuple(found) != shape:
        refuse(f"its tensor {name} has the shape {short(found)} instead of {list(shape)}")
    if type(bits) is not int or (bits not in BITS and bits != FULL):
        refuse(f"its tensor {name} must have 2 to 16 bits or 32, got {short(bits)}")
    size = 1
    for number in shape:
        size *= number
    if nonzeros is not None and (type(nonzeros) is not int or not 0 <= nonzeros <= size):
        refuse(f"its tensor {name} has {short(nonzeros)} non-zeros of {size} elements")
    if plain and (bits != FULL or nonzeros is not None):
        refuse(f"its tensor {name} must be dense and in 32 bits, as it belongs to a LayerNorm")
    return Described(shape=shape, bits=bits, nonzeros=nonzeros)


def _check_size(value: Any, name: str, limit: int = LARGEST_SIZE) -> int:
    if type(value) is not int or not 1 <= value <= limit:
        refuse(f"its {name} must be a whole number from 1 to {limit}, got {short(value)}")
    return value


def _check_keys(record: Mapping[str, Any], keys: tuple[str, ...], what: str) -> None:
    if missing := [key for key in keys if key not in record]:
        refuse(f"{what} lack {short(missing[0])}")
    if more := sorted(set(record) - set(keys)):
        refuse(f"{what} have an unknown {short(more[0])}")


def refuse(why: str) -> NoReturn:
    """Raise an error without the file's name, which a caller adds."""
    raise ArtifactError(why)
