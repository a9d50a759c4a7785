"""A quantized run is counted from its integers: their bits, their steps, and what meets them."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.stored_runs import RECIPE, SHARES, write_run

from micronet_lm.accounting import Account, Row, challenge, count, examine
from micronet_lm.accounting.memory import state
from micronet_lm.config import Place, QuantizeConfig, Recipe, merge_recipe
from micronet_lm.errors import RunError
from micronet_lm.layout import bits_of, slots, widths

Arrays = dict[str, np.ndarray[Any, Any]]


def quantized(**keys: Any) -> tuple[Recipe, Arrays]:
    """A recipe and a checkpoint whose integers have some zeros."""
    recipe = merge_recipe(RECIPE, {f"quantize.{key}": value for key, value in keys.items()})
    assert recipe.quantize is not None
    random, held, shape = np.random.default_rng(0), Arrays(), recipe.model
    width = widths(recipe.quantize, shape)
    for slot in slots(shape):
        sizes = (slot.inputs, slot.outputs) if slot.transposed else (slot.outputs, slot.inputs)
        for name, size in ((slot.name, sizes), (slot.bias, (slot.outputs,))):
            if name is None:
                continue
            if name not in width:
                held[name] = np.ones(size, np.float32)
                continue
            bits = width[name].bits
            limit = 2 ** (bits - 1) - 1
            dtype = np.int8 if bits <= 8 else np.int16
            held[name] = random.integers(-limit, limit + 1, size).astype(dtype)
            held[name][random.random(size) < 0.4] = 0
            held[f"{name}.steps"] = np.ones(width[name].scales, np.float32)
    for place in recipe.quantize.chosen_places:
        held[f"activations.{place}"] = np.ones((shape.quantizers(place), 2), np.float32)
    return recipe, held


CHOICES: list[dict[str, Any]] = [
    {"bits": 9},
    {"bits": 9, "places": "text", "table_bits": 32, "tail_bits": 32},
    {"bits": 6, "layer_bits": 4, "activation_bits": 10, "table_scales": "row", "position_bits": 5},
    {"bits": 12, "scales": "matrix", "bias_bits": 32, "places": "none"},
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_storage_is_the_bits_of_the_file(tmp_path: Path, choice: dict[str, Any]) -> None:
    recipe, held = quantized(**choice)
    assert recipe.quantize is not None
    width, bits = widths(recipe.quantize, recipe.model), 0
    for name, tensor in held.items():
        if name.endswith(".steps") or name.startswith("activations."):
            bits += 32 * tensor.size
        else:
            own = width[name].bits if name in width else 32
            bits += min(int(np.count_nonzero(tensor)) * own + tensor.size, tensor.size * own)
    bits += 32 * (4 * recipe.model.width * recipe.model.layers + 2)  # LayerNorms, θ and λ
    target = examine(write_run(tmp_path, held, recipe), recipe, SHARES)
    assert count(target, challenge()).storage == Fraction(bits, 32)
    assert target.quantized
    assert target.places == recipe.quantize.chosen_places


def row(account: Account, part: str, component: str, name: str) -> Row:
    (found,) = (
        r
        for r in account.rows
        if (r.label.part, r.label.component, r.label.name) == (part, component, name)
    )
    return found


def test_an_unquantized_input_makes_a_product_a_full_one(tmp_path: Path) -> None:
    accounts = {}
    for places in ("code", "text", "none"):
        recipe, held = quantized(bits=9, places=places)
        target = examine(write_run(tmp_path / places, held, recipe), recipe, SHARES)
        accounts[places] = count(target, challenge())

    def bits(places: str, *label: str) -> Fraction:
        found = row(accounts[places], *label)
        return 32 * found.multiplies / found.plain_multiplies

    qkv = ("layer 1", "attention", "queries, keys, values")
    inner, outer = (("layer 2", "feed-forward", name) for name in ("inner", "outer"))
    for label, code, text, none in (
        (qkv, 9, 32, 32),  # behind a LayerNorm
        (inner, 9, 32, 32),
        (outer, 9, 9, 32),  # behind ReLU
        (("layer 1", "attention", "key scores"), 9, 9, 32),
        (("layer 1", "attention", "values"), 9, 32, 32),  # probabilities times values
        (("layer 1", "attention", "output"), 9, 9, 32),
        (("layer 1", "attention", "position scores"), 32, 32, 32),  # the table stays in fp32
        (("input", "embedding", "projection 2"), 9, 9, 9),  # a table's row is integers
        (("bin 1", "softmax", "words"), 9, 9, 32),
        (("bin 2", "softmax", "words"), 32, 32, 32),  # behind a projection nobody quantizes
        (("cache", "cache", "similarities"), 9, 9, 32),
    ):
        assert [bits(p, *label) for p in ("code", "text", "none")] == [code, text, none], label


def test_a_scaled_operand_keeps_its_integers(tmp_path: Path) -> None:
    """1/√d_k and θ go into a step: one operand's multiplies in full, the products at 9 bits."""
    keys, hidden = 2 * 3, 8  # h · k, d
    scores, similarities = 2 * 7, 20  # h · C of 3 terms each, N of 8
    rows = {
        "queries": ("layer 2", "attention", "queries / √d_k"),
        "scores": ("layer 2", "attention", "key scores"),
        "theta": ("cache", "cache", "θ · hidden state"),
        "similarities": ("cache", "cache", "similarities"),
    }
    for places, bits in (("code", 9), ("none", 32)):
        recipe, held = quantized(bits=9, places=places)
        target = examine(write_run(tmp_path / places, held, recipe), recipe, SHARES)
        account = count(target, challenge())
        found = {name: row(account, *label) for name, label in rows.items()}
        assert {name: r.multiplies for name, r in found.items()} == {
            "queries": keys,
            "scores": Fraction(scores * 3 * bits, 32),
            "theta": hidden,
            "similarities": Fraction(similarities * 8 * bits, 32),
        }
        assert [found["queries"].adds, found["theta"].adds] == [0, 0]
        assert [found["scores"].adds, found["similarities"].adds] == [scores * 2, similarities * 7]
        # Products of 9-bit integers have 17 bits; each level of an adder tree has one bit more.
        tree = count(target, challenge(tree=True))
        adds = [row(tree, *rows[name]).adds for name in ("scores", "similarities")]
        wanted = [
            scores * Fraction(17 + 18, 32),
            similarities * Fraction(4 * 17 + 2 * 18 + 19, 32),
        ]
        assert adds == (wanted if bits == 9 else [scores * 2, similarities * 7])


def test_weights_and_activations_may_differ(tmp_path: Path) -> None:
    recipe, held = quantized(bits=4, activation_bits=10, table_bits=6)
    target = examine(write_run(tmp_path, held, recipe), recipe, SHARES)
    account = count(target, challenge())
    assert target.activation_bits(Place.QKV) == 10
    assert target.activation_bits(Place.PROJECTED) == 32
    words = row(account, "bin 1", "softmax", "words")
    assert 32 * words.multiplies == 10 * words.plain_multiplies
    assert words.bits == 6
    shape = recipe.model
    tokens = shape.layers * (shape.context - 1) * shape.heads * (3 + 5)
    assert state(target).bytes == Fraction((tokens + 20 * 8) * 10 + 20 * 32, 8)
    assert recipe.quantize is not None
    assert {s.role: bits_of(recipe.quantize, s) for s in slots(shape)} == {
        "projection": 4,
        "layer": 4,
        "positions": 32,
        "table": 6,
        "tail": 4,
    }


def test_what_cannot_be_counted(tmp_path: Path) -> None:
    recipe, held = quantized(bits=5)
    wrong = {**held, "blocks.0.inner.weight": np.full((12, 8), 16, np.int8)}
    with pytest.raises(RunError, match="integer 16, too large for 5 bits"):
        examine(write_run(tmp_path / "a", wrong, recipe), recipe, SHARES)
    floats = {name: a.astype(np.float32) for name, a in held.items() if ".steps" not in name}
    with pytest.raises(RunError, match="as floats, for resuming the training"):
        examine(write_run(tmp_path / "b", floats, recipe), recipe, SHARES)


def test_places_and_widths_in_a_recipe() -> None:
    assert QuantizeConfig(places=("relu",)).chosen_places == {Place.RELU}
    assert QuantizeConfig(activation_bits=32).chosen_places == frozenset()
    assert len(QuantizeConfig().chosen_places) == 8
    recipe = merge_recipe(RECIPE, {"quantize.places": ["relu", "hidden"]})
    assert recipe.quantize is not None
    assert recipe.quantize.chosen_places == {Place.RELU, Place.HIDDEN}
    recipe = merge_recipe(RECIPE, {"quantize.places": None, "quantize.bits": 5})
    assert recipe.quantize is not None
    assert recipe.quantize.places == "none"
