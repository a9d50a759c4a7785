"""Packed models with random weights, of any shape, for tests and benchmarks.

They resemble trained ones: hidden states and logits have ordinary sizes, words with higher ids are
rarer, activations fill the ranges of their quantizers.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.packed_model import CacheParameters, Floats, PackedModel, Weights
from micronet_lm.artifact.scales import quantized, scales_of
from micronet_lm.config import FULL, ModelConfig, Place
from micronet_lm.layout import Role, Slot, norm_names, slots
from micronet_lm.ngrams import NgramTable, estimate_table

TABLE_SIZE = 0.05
"""Standard deviation of the tables' weights; that of logits is then about 3."""

RANGES = {
    Place.ATTENTION_NORM: 4.0,
    Place.QKV: 5.0,
    Place.ATTENTION_SOFTMAX: 0.5,
    Place.ATTENTION_VALUES: 2.0,
    Place.FFN_NORM: 4.0,
    Place.RELU: 4.0,
    Place.FFN_OUTPUT: 4.0,
    Place.HIDDEN: 10.0,
    Place.PROJECTED: 10.0,
}
"""Approximate range of a random model's activations at each place."""


_SPARSE = frozenset({Role.LAYER, Role.PROJECTION, Role.TABLE})


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Pruning, quantization and cache of a random model."""

    seed: int = 0
    cache: int = 0
    """Size of the cache; 0 for no cache."""
    theta: float = 0.02
    lam: float = 0.1
    ramp: int = 0
    fade: int = 0
    sparsity: float = 0.0
    """Share of zeros in every matrix of layers, projections and tables."""
    bits: int = FULL
    """Bits of all matrices without an option of their own."""
    table_bits: int | None = None
    """Bits of the tables and of the first bin's entries for the tails."""
    position_bits: int = FULL
    bias_bits: int | None = None
    scale_per_row: bool = False
    """Whether layers and projections have one scale per row instead of one."""
    activation_bits: int | None = None
    """Bits of the activations; None for as many as `bits`."""
    places: Collection[Place] = ()
    """Places to quantize; those that the model does not have are ignored."""
    ngrams: int = 0
    """Order of a table of n-grams of random text; 0 for none."""
    share: float = 0.3
    """The table's share."""
    tokenizer: str = "wikitext"


def random_model(shape: ModelConfig, choice: Choice | None = None) -> PackedModel:
    """Return a random packed model; the same seed gives the same bits."""
    choice = choice or Choice()
    random = np.random.default_rng(choice.seed)
    tensors: dict[str, Weights] = {}
    for slot in slots(shape):
        own_bits, bias_bits = _bits(slot, choice)
        by_row = choice.scale_per_row and slot.role in {Role.LAYER, Role.PROJECTION}
        tensors[slot.name] = _packed(_matrix(slot, choice, random), own_bits, by_row)
        if slot.bias:
            tensors[slot.bias] = _packed(_bias(slot, shape, random), bias_bits, False)
    for name in norm_names(shape):
        middle = 1.0 if name.endswith("weight") else 0.0
        values = random.normal(middle, 0.1, shape.width)
        tensors[name] = Weights(values=values.astype(np.float32), maskable=False)
    activation_bits = choice.activation_bits or choice.bits
    activations = _activations(shape, choice, activation_bits, random)
    cache = None
    if choice.cache:
        theta, lam = (float(np.float32(value)) for value in (choice.theta, choice.lam))
        cache = CacheParameters(
            size=choice.cache, theta=theta, lam=lam, ramp=choice.ramp, fade=choice.fade
        )
    return PackedModel(
        shape=shape,
        tensors=tensors,
        words=random_words(shape.bounds[-1]),
        tokenizer=choice.tokenizer,
        cache=cache,
        activation_bits=activation_bits if activations else None,
        activations=activations,
        ngrams=_table(shape.bounds[-1], choice) if choice.ngrams else None,
        card={"name": "random", "seed": choice.seed},
    )


def _table(vocabulary: int, choice: Choice) -> NgramTable:
    """Return the table of a random text whose words often come in the same order."""
    random = np.random.default_rng(choice.seed)
    phrases = [zipf_ids(random, vocabulary, length) for length in random.integers(2, 9, 40)]
    parts = []
    for number in random.integers(0, len(phrases), 200):
        parts += [phrases[number], zipf_ids(random, vocabulary, 3)]
    text = np.concatenate([np.arange(vocabulary), *parts])
    return estimate_table(
        text, vocabulary, order=choice.ngrams, min_count=2, bits=4, share=choice.share
    )


def zipf_ids(random: np.random.Generator, vocabulary: int, count: int) -> NDArray[np.int64]:
    """Return random words, rarer ones with higher ids."""
    return np.asarray(random.random(count) ** 2 * vocabulary).astype(np.int64)


def random_words(count: int) -> list[str]:
    """Return distinct words, `<unk>` and `<eos>` first; some share prefixes, some are long."""
    special = ["<unk>", "<eos>", "the", ",", "é", "日本"][:count]
    return special + [f"{'abcdefghij'[n % 10]}{n // 10:x}" for n in range(count - len(special))]


def _bits(slot: Slot, choice: Choice) -> tuple[int, int]:
    """Return the bits of a matrix and of its bias."""
    bits = choice.bits
    if slot.role is Role.POSITIONS:
        bits = choice.position_bits
    elif slot.role in {Role.TABLE, Role.TAIL}:
        bits = choice.table_bits or bits
    return bits, choice.bias_bits or bits


def _matrix(slot: Slot, choice: Choice, random: np.random.Generator) -> Floats:
    """Return weights that keep activations at an ordinary size, the smallest of them pruned."""
    size = slot.inputs**-0.5
    if slot.role in {Role.TABLE, Role.TAIL}:
        size = TABLE_SIZE
    elif slot.name.startswith("embedding.projections"):
        size /= TABLE_SIZE
    elif slot.role is Role.POSITIONS:
        size = 0.3
    shape = (slot.inputs, slot.outputs) if slot.transposed else (slot.outputs, slot.inputs)
    weights = random.standard_normal(shape, np.float32) * np.float32(size)
    zeros = round(choice.sparsity * weights.size) if slot.role in _SPARSE else 0
    if zeros:
        flat = weights.reshape(-1)
        flat[np.argpartition(np.abs(flat), zeros - 1)[:zeros]] = 0
    return weights


def _bias(slot: Slot, shape: ModelConfig, random: np.random.Generator) -> Floats:
    """Return random biases; those of the softmax are word frequencies by Zipf's law."""
    if slot.role not in {Role.TABLE, Role.TAIL}:
        return random.normal(0.0, 0.1, slot.outputs).astype(np.float32)
    share = 1 / (np.arange(shape.bounds[-1]) + 3.0)
    edges = shape.bounds
    if slot.role is Role.TAIL:
        mass = [share[low:high].sum() for low, high in pairwise(edges[1:])]
        return np.asarray(np.log(np.array(mass) / share.sum()), np.float32)
    number = int(slot.name.rsplit(".", 1)[1])
    own = share[edges[number] : edges[number + 1]]
    return np.asarray(np.log(own / (share if number == 0 else own).sum()), np.float32)


def _packed(values: Floats, bits: int, by_row: bool) -> Weights:
    if bits == FULL:
        return Weights(values=values)
    axes = tuple(range(1, values.ndim)) if by_row else None
    ranges = np.abs(values).max(axis=axes).reshape(-1).astype(np.float32)
    scales = scales_of(ranges, bits)
    integers = quantized(values, scales.reshape(-1, *[1] * (values.ndim - 1)), bits)
    return Weights(values=integers, scales=scales, bits=bits)


def _activations(
    shape: ModelConfig, choice: Choice, bits: int, random: np.random.Generator
) -> dict[Place, Floats]:
    found = {}
    for place in sorted(choice.places):
        count = shape.quantizers(place)
        if not count:
            continue
        middle = RANGES[place]
        if place is Place.HIDDEN:
            middle = 3.0 * math.sqrt(2 * shape.layers + 1)
        ranges = (middle * random.uniform(0.8, 1.2, count)).astype(np.float32)
        found[place] = np.stack([ranges, scales_of(ranges, bits)], axis=1)
    return found
