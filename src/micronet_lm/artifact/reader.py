"""Read a packed file strictly: refuse everything that docs/format.md does not allow."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.bits import loose_bits, packed_size, unpack_integers, unpack_mask
from micronet_lm.artifact.checks import check_model
from micronet_lm.artifact.coded_integers import WIDEST, integers_of, read_coded
from micronet_lm.artifact.coded_words import decode_words
from micronet_lm.artifact.container import Container, open_container
from micronet_lm.artifact.metadata import (
    Described,
    DescribedCache,
    Metadata,
    from_json,
    refuse,
)
from micronet_lm.artifact.ngram_parts import read_table
from micronet_lm.artifact.packed_model import CacheParameters, PackedModel, Weights
from micronet_lm.artifact.prefix_codes import decode_blocks
from micronet_lm.config import FULL, Place
from micronet_lm.errors import ArtifactError
from micronet_lm.layout import is_norm
from micronet_lm.ngrams import NgramTable
from micronet_lm.spelling import Spelling
from micronet_lm.strict_json import short

LARGEST_TEXT = 2**32 - 1
"""The vocabulary has fewer bytes than this."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedFile:
    """An opened file: the model, and its parts on disk."""

    container: Container
    model: PackedModel


def read_packed(path: Path) -> PackedModel:
    """Read the model of a packed file."""
    return open_packed(path).model


def read_card(path: Path) -> dict[str, Any]:
    """Read the card of a packed file, and nothing else of its model."""
    return dict(from_json(open_container(path).metadata).card)


def open_packed(path: Path) -> PackedFile:
    """Read a packed file: its model and its parts."""
    try:
        container = open_container(path)
        return PackedFile(container=container, model=_model(container))
    except ArtifactError as error:
        if str(path) in str(error):
            raise
        raise ArtifactError(f"{path} cannot be used: {error}; restore it or pack again") from None


def _model(container: Container) -> PackedModel:
    metadata = from_json(container.metadata)
    reader = _Reader(container)
    model = PackedModel(
        shape=metadata.model,
        tensors=reader.tensors(metadata),
        words=reader.words(metadata.model.bounds[-1], coded=metadata.coded),
        tokenizer=metadata.tokenizer,
        cache=reader.cache(metadata.cache),
        spelling=reader.spelling(),
        activation_bits=metadata.activation_bits,
        activations=reader.activations(metadata),
        ngrams=reader.ngrams(metadata),
        card=metadata.card,
        coded=metadata.coded,
    )
    reader.finish()
    check_model(model)
    return model


class _Reader:
    """The parts of a file that are still unread."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._left = set(container.parts)

    def take(self, name: str, dtype: str, *shape: int) -> NDArray[Any]:
        """Return a part, which must have this type and shape."""
        part = self._container.parts.get(name)
        if part is None:
            refuse(f"it lacks the tensor {name}")
        if (part.dtype, part.shape) != (dtype, shape):
            refuse(
                f"its tensor {name} is {part.dtype} {list(part.shape)} instead of "
                f"{dtype} {list(shape)}"
            )
        self._left.discard(name)
        return self._container.array(name)

    def finish(self) -> None:
        """Refuse parts that were not read."""
        if self._left:
            refuse(f"it has an unknown tensor {short(min(self._left))}")

    def tensors(self, metadata: Metadata) -> dict[str, Weights]:
        """Return all weight tensors; those that are coded are decoded together."""
        found = self._decoded(metadata) if metadata.coded else {}
        for name, told in metadata.tensors.items():
            if name not in found:
                found[name] = self.weights(name, told)
        return {name: found[name] for name in metadata.tensors}

    def _decoded(self, metadata: Metadata) -> dict[str, Weights]:
        coded = {
            name: told
            for name, told in metadata.tensors.items()
            if f"{name}.coded" in self._container.parts
            and told.nonzeros is None
            and told.bits <= WIDEST
        }
        blocks = []
        for name, told in coded.items():
            size = self._container.parts[f"{name}.coded"].bytes
            part = self.take(f"{name}.coded", "U8", size)
            count = int(np.prod(told.shape, dtype=object))
            blocks.append(read_coded(name, part, count, told.bits))
        symbols = decode_blocks(blocks) if blocks else []
        return {
            name: Weights(
                values=integers_of(own, told.bits).reshape(told.shape),
                scales=self._scales(f"{name}.steps", told.shape[0]),
                bits=told.bits,
            )
            for (name, told), own in zip(coded.items(), symbols, strict=True)
        }

    def weights(self, name: str, told: Described) -> Weights:
        """Return a weight tensor; it must be stored in the shorter of its two forms."""
        found = self._put_together(name, told)
        if found.sparse != (told.nonzeros is not None):
            refuse(
                f"its tensor {name} with {found.nonzeros} non-zeros of {found.size} elements is "
                f"{'dense' if found.sparse else 'sparse'}, which is not the shorter form"
            )
        return found

    def _put_together(self, name: str, told: Described) -> Weights:
        size = int(np.prod(told.shape, dtype=object))
        count = size if told.nonzeros is None else told.nonzeros
        mask = None
        if told.nonzeros is not None:
            mask = unpack_mask(self._packed(f"{name}.mask", size, 1), size)
            if (marked := int(np.count_nonzero(mask))) != count:
                refuse(f"its tensor {name}.mask marks {marked} non-zeros instead of {count}")
        if told.bits == FULL:
            dense = mask is None
            shape = told.shape if dense else (count,)
            values = self.take(name if dense else f"{name}.values", "F32", *shape)
            values = _spread(name, values, mask, told.shape)
            return Weights(values=values, maskable=not is_norm(name))
        packed = self._packed(f"{name}.integers", count, told.bits)
        integers = unpack_integers(packed, count, told.bits)
        if integers.size and int(integers.min()) == -(2 ** (told.bits - 1)):
            refuse(f"its tensor {name} has the integer −2^{told.bits - 1}, which is not allowed")
        return Weights(
            values=_spread(name, integers, mask, told.shape),
            scales=self._scales(f"{name}.steps", told.shape[0]),
            bits=told.bits,
        )

    def words(self, count: int, *, coded: bool) -> Sequence[str]:
        """Return the vocabulary's words."""
        if coded and (codes := self._container.parts.get("vocabulary.coded")):
            data = decode_words(self.take("vocabulary.coded", "U8", codes.bytes), count)
        else:
            part = self._container.parts.get("vocabulary")
            data = self.take("vocabulary", "U8", part.bytes if part else 0).tobytes()
        if len(data) >= LARGEST_TEXT:
            refuse(f"its vocabulary has {len(data):,} bytes, {LARGEST_TEXT - 1:,} are allowed")
        try:
            words = data.decode("utf-8").split("\n")
        except UnicodeDecodeError as error:
            refuse(f"byte {error.start} of its vocabulary is not UTF-8")
        if words.pop():
            refuse("the last word of its vocabulary has no line feed")
        if len(words) != count:
            refuse(f"its vocabulary has {len(words)} words instead of {count}")
        return words

    def cache(self, described: DescribedCache | None) -> CacheParameters | None:
        """Return the cache's parameters, or None without a cache."""
        if described is None:
            return None
        theta, lam = (float(self.take(f"cache.{key}", "F32", 1)[0]) for key in ("theta", "lam"))
        return CacheParameters(**asdict(described), theta=theta, lam=lam)

    def spelling(self) -> Spelling | None:
        """Return the spelling model, or None without one."""
        part = self._container.parts.get("spelling")
        if part is None:
            return None
        return Spelling.from_bytes(self.take("spelling", "U8", part.bytes).tobytes())

    def activations(self, metadata: Metadata) -> dict[Place, NDArray[np.float32]]:
        """Return the quantizers of all quantized places."""
        found = {}
        for place in Place:
            name = f"activations.{place}"
            if part := self._container.parts.get(name):
                found[place] = self.take(name, "F32", *part.shape)
        return found

    def ngrams(self, metadata: Metadata) -> NgramTable | None:
        """Return the table of n-grams, if the file has one."""
        told = metadata.ngrams
        return None if told is None else read_table(self.take, told, metadata.model.bounds[-1])

    def _scales(self, name: str, rows: int) -> NDArray[np.float32]:
        part = self._container.parts.get(name)
        each_row = part is not None and part.shape == (rows,)
        return self.take(name, "F32", rows if each_row else 1)

    def _packed(self, name: str, count: int, bits: int) -> NDArray[np.uint8]:
        packed: NDArray[np.uint8] = self.take(name, "U8", packed_size(count, bits))
        if loose_bits(packed, count * bits):
            refuse(f"its tensor {name} has bits set after its last element")
        return packed


def _spread(
    name: str, values: NDArray[Any], mask: NDArray[np.bool_] | None, shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return the dense tensor of non-zeros and their mask."""
    if mask is None:
        return values.reshape(shape)
    if np.count_nonzero(values) != values.size:
        refuse(f"its tensor {name} has a zero among its non-zeros")
    dense = np.zeros(mask.size, values.dtype)
    dense[mask] = values
    return dense.reshape(shape)
