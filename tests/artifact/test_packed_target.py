"""The bits of a file's tensors are what the accounting calls storage, exactly."""

from pathlib import Path

from tests.support.shapes import PACKED

from micronet_lm.accounting import challenge, count
from micronet_lm.accounting.recipe_target import describe
from micronet_lm.artifact import PackedModel, open_packed
from micronet_lm.artifact.anatomy import by_part, left_in_fp32, pieces
from micronet_lm.artifact.packed_target import UNCOUNTED, part_bytes, stored_bits, target_of
from micronet_lm.artifact.random_model import random_model
from micronet_lm.config import FULL, Recipe

SHARES = (5, 3, 2)


def test_storage_is_the_files_bits(packed: tuple[PackedModel, Path]) -> None:
    _, path = packed
    file = open_packed(path)
    storage = count(target_of(file.model, "m", SHARES), challenge()).storage
    assert storage * FULL == stored_bits(file.model)
    # The same from the file's parts alone, which are padded to whole bytes.
    parts = {n: p for n, p in file.container.parts.items() if n not in UNCOUNTED}
    slack = 8 * part_bytes(file.container) - stored_bits(file.model)
    padded = [part for part in parts.values() if part.dtype == "U8"]
    assert 0 <= slack < 8 * max(1, len(padded))


def test_the_padding_of_a_part_is_less_than_a_byte(packed: tuple[PackedModel, Path]) -> None:
    _, path = packed
    file = open_packed(path)
    for name, weights in file.model.tensors.items():
        for kind, bits in (("mask", 1), ("integers", weights.bits)):
            part = file.container.parts.get(f"{name}.{kind}")
            if part is not None:
                whole = kind == "mask" or not weights.sparse
                used = bits * (weights.size if whole else weights.nonzeros)
                assert 0 <= 8 * part.bytes - used < 8


def test_a_plain_model_is_counted_like_its_recipe() -> None:
    recipe = Recipe(model=PACKED)
    own = count(target_of(random_model(PACKED), "m", SHARES), challenge())
    assert own.storage == count(describe(recipe, "m", SHARES), challenge()).storage
    assert own.operations == count(describe(recipe, "m", SHARES), challenge()).operations


def test_the_parts_add_up(packed: tuple[PackedModel, Path]) -> None:
    model, _ = packed
    listed = pieces(model)
    assert sum(by_part(listed).values()) == stored_bits(model)
    parts = {piece.name: piece.part for piece in listed}
    assert parts["softmax.tail_weight"] == "entries for other bins"  # a matrix, and no bias
    assert parts["softmax.tail_bias"] == parts["softmax.biases.0"] == "softmax biases"
    left = left_in_fp32(listed)
    assert left["LayerNorm"] == 32 * 2 * 4 * 8  # two layers of four vectors of width 8
    scales = sum(w.scales.size for w in model.tensors.values() if w.scales is not None)
    assert left.get("steps", 0) == 32 * scales
    integers = sum(w.stored_bits for w in model.tensors.values() if w.bits < FULL) - 32 * scales
    if model.ngrams:
        integers += model.ngrams.stored_bits - 32 * 17  # sixteen values and the share
    assert sum(left.values()) + integers == stored_bits(model)
