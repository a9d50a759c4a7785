"""A packed model as a target of the accounting."""

from dataclasses import replace

import numpy as np

from micronet_lm.accounting.recipe_target import check_shares
from micronet_lm.accounting.run_target import measured
from micronet_lm.accounting.target import CountedTable, Matrix, Target, usual_bits
from micronet_lm.artifact.container import Container
from micronet_lm.artifact.packed_model import PackedModel
from micronet_lm.config import FULL
from micronet_lm.layout import slots
from micronet_lm.ngrams import NgramTable

UNCOUNTED = frozenset({"vocabulary", "vocabulary.coded", "spelling"})
"""Tensors that the challenge does not count: inference by ids does not need them."""


def target_of(
    model: PackedModel, name: str, shares: tuple[int, ...], *, shares_from: str = "given"
) -> Target:
    """Return the target of a packed model."""
    check_shares(shares, model.shape)
    matrices: dict[str, Matrix] = {}
    for slot in slots(model.shape):
        own = model.tensors[slot.name]
        bias = model.tensors[slot.bias] if slot.bias else None
        pair = [own] if bias is None else [own, bias]
        matrices[slot.name] = replace(
            measured(slot, *(tensor.values for tensor in pair)),
            bits=own.bits,
            bias_bits=FULL if bias is None else bias.bits,
            scales=sum(tensor.scales.size for tensor in pair if tensor.scales is not None),
        )
    return Target(
        name=name,
        shape=model.shape,
        matrices=matrices,
        cache=model.cache.size if model.cache else 0,
        fades=model.cache is not None and model.cache.fade > 0,
        shares=shares,
        shares_from=shares_from,
        bits=usual_bits(model.shape, matrices, model.activation_bits),
        ngrams=counted_table(model.ngrams) if model.ngrams else None,
        places=frozenset(model.activations),
        place_bits=model.activation_bits,
    )


def counted_table(table: NgramTable) -> CountedTable:
    """Return what the counting needs of a table of n-grams."""
    longest = sum(int(np.diff(own.starts).max()) for own in table.orders)
    return CountedTable(bits=table.stored_bits, entries=sum(table.entries), added=longest)


def stored_bits(model: PackedModel) -> int:
    """Return the bits of a file's tensors, without words and padding to whole bytes."""
    total = 0
    for weights in model.tensors.values():
        total += weights.stored_bits
    total += sum(FULL * rows.size for rows in model.activations.values())
    total += model.ngrams.stored_bits if model.ngrams else 0
    return total + (2 * FULL if model.cache else 0)


def part_bytes(container: Container) -> int:
    """Return the bytes of a file's tensors, without the words and their spelling."""
    return sum(part.bytes for name, part in container.parts.items() if name not in UNCOUNTED)
