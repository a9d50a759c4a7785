"""The tensors of a table of n-grams in a packed file, and the checks that both ways share."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.bits import loose_bits, pack_mask, packed_size, unpack_mask
from micronet_lm.artifact.metadata import DescribedNgrams, refuse
from micronet_lm.ngrams import NgramTable, TableOrder, word_bits

Take = Callable[..., NDArray[Any]]
"""Gives a part of the file by name, dtype and shape, or refuses."""


def table_parts(table: NgramTable) -> dict[str, NDArray[Any]]:
    """Return the tensors of a table by name."""
    width = word_bits(len(table.unigrams))
    parts: dict[str, NDArray[Any]] = {
        "ngrams.share": np.array([table.share], np.float32),
        "ngrams.values": table.values,
        "ngrams.1.codes": _packed(table.unigrams, table.bits),
    }
    for number, own in enumerate(table.orders, start=2):
        parts[f"ngrams.{number}.contexts"] = pack_mask(own.contexts)
        parts[f"ngrams.{number}.last"] = pack_mask(own.last)
        parts[f"ngrams.{number}.words"] = _packed(own.words, width)
        parts[f"ngrams.{number}.codes"] = _packed(own.codes, table.bits)
    return parts


def read_table(take: Take, told: DescribedNgrams, vocabulary: int) -> NgramTable:
    """Return the table of a file; what its metadata say is already checked."""

    def numbers(name: str, count: int, bits: int) -> NDArray[np.int64]:
        packed = take(name, "U8", packed_size(count, bits))
        if loose_bits(packed, count * bits):
            refuse(f"its tensor {name} has bits set after its last element")
        return _unpacked(packed, count, bits)

    orders, below = [], vocabulary
    for number, count in enumerate(told.entries, start=2):
        name = f"ngrams.{number}"
        orders.append(
            TableOrder(
                contexts=numbers(f"{name}.contexts", below, 1).astype(bool),
                last=numbers(f"{name}.last", count, 1).astype(bool),
                words=numbers(f"{name}.words", count, word_bits(vocabulary)),
                codes=numbers(f"{name}.codes", count, told.bits).astype(np.uint8),
            )
        )
        below = count
    return NgramTable(
        share=float(take("ngrams.share", "F32", 1)[0]),
        bits=told.bits,
        values=take("ngrams.values", "F32", 2**told.bits),
        unigrams=numbers("ngrams.1.codes", vocabulary, told.bits).astype(np.uint8),
        orders=orders,
    )


def check_table(table: NgramTable, vocabulary: int) -> None:
    """Refuse a table that docs/format.md does not allow."""
    share, values = np.float32(table.share), table.values
    if not 0 < share < 1:
        refuse(f"its n-grams' share must be between 0 and 1, got {share}")
    if values.dtype != np.float32 or values.shape != (2**table.bits,):
        refuse(f"its n-grams must have {2**table.bits} values, got {list(values.shape)}")
    increasing = bool((np.diff(values) > 0).all())
    if not (np.isfinite(values).all() and increasing and values[0] > 0 and values[-1] <= 1):
        refuse("its n-grams' values must increase from above 0 to at most 1")
    if len(table.unigrams) != vocabulary:
        refuse(f"its n-grams have {len(table.unigrams)} codes for {vocabulary} words")
    if _sums(values, table.unigrams, np.array([0, vocabulary])).max() > 1:
        refuse("its n-grams' values of single words sum to more than 1")
    below = vocabulary
    for number, own in enumerate(table.orders, start=2):
        _check_order(f"its n-grams of {number} words", own, values, below, vocabulary)
        below = len(own.words)


def _check_order(
    what: str, own: TableOrder, values: NDArray[np.float32], below: int, vocabulary: int
) -> None:
    if not len(own.words) or len(own.contexts) != below:
        refuse(
            f"{what} have {len(own.words)} entries after {len(own.contexts)} of {below} contexts"
        )
    if not len(own.words) == len(own.last) == len(own.codes):
        refuse(f"{what} do not have as many words as values")
    if not own.last[-1] or np.count_nonzero(own.last) != np.count_nonzero(own.contexts):
        refuse(f"{what} do not have one group for each context")
    if int(own.words.min()) < 0 or int(own.words.max()) >= vocabulary:
        refuse(f"{what} have a word outside the vocabulary of {vocabulary}")
    if not (own.last[:-1] | (np.diff(own.words) > 0)).all():
        refuse(f"{what} have a group whose words do not increase")
    if _sums(values, own.codes, own.starts).max() > 1:
        refuse(f"{what} have a group whose values sum to more than 1")


def _sums(
    values: NDArray[np.float32], codes: NDArray[np.uint8], starts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return each group's sum, added one by one in double as every reader does."""
    groups = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.asarray(np.bincount(groups, values[codes].astype(np.float64)), np.float64)


def _packed(numbers: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    spread = (numbers.astype(np.int64)[:, None] >> np.arange(bits)) & 1
    return np.packbits(spread.astype(np.uint8).reshape(-1), bitorder="little")


def _unpacked(packed: NDArray[np.uint8], count: int, bits: int) -> NDArray[np.int64]:
    spread = unpack_mask(packed, count * bits).reshape(count, bits)
    return spread @ (np.int64(1) << np.arange(bits))
