"""Rules `challenge`: every difference by itself, all of them together, and the options."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micronet_lm.accounting import (
    PAPER,
    Departure,
    Plan,
    Rows,
    Rules,
    Target,
    carry_out,
    challenge,
    choose_rules,
    count,
    describe,
    differences,
)
from micronet_lm.accounting.formulas import shorter, tree_adds
from micronet_lm.accounting.rules import REASONS
from micronet_lm.config import Place, load_recipe
from micronet_lm.errors import UsageError

L, H, D, K, C, N = 8, 8, 256, 24, 97, 3000


def student(**plan: object) -> Target:
    dense = describe(load_recipe("paper/student", {"cache.size": N}), "paper/student")
    return carry_out(Plan(**plan), dense)  # type: ignore[arg-type]


def amounts(target: Target, rules: Rules) -> dict[Departure, tuple[Any, Any]]:
    return {item.departure: (item.storage, item.operations) for item in differences(target, rules)}


@pytest.mark.parametrize(
    ("target", "rules"),
    [
        (student(), challenge()),
        (student(), challenge(freebie=True)),
        (student(density=Fraction("0.3")), challenge(tree=True, freebie=True)),
        (student(density=Fraction("0.642"), bits=9), challenge()),
        (student(density=Fraction("0.642"), bits=9), challenge(tree=True)),
        (student(bits=4, activations="text", embeddings=False, scale_a_row=True), challenge()),
    ],
    ids=["dense", "freebie", "pruned", "published", "tree", "text"],
)
def test_paper_and_all_differences_are_challenge_exactly(target: Target, rules: Rules) -> None:
    paper, whole, found = count(target, PAPER), count(target, rules), differences(target, rules)
    assert paper.storage + sum(item.storage for item in found) == whole.storage
    assert paper.operations + sum(item.operations for item in found) == whole.operations
    assert [item.departure for item in found] == [
        own for own in Departure if own in rules.departures
    ]
    assert differences(target, PAPER) == []


def test_every_step_has_its_reason() -> None:
    assert set(REASONS) == set(Departure)


def test_differences_of_a_dense_student_by_hand() -> None:
    found = amounts(student(), challenge())
    assert {step for step, both in found.items() if any(both)} == {
        Departure.POSITION_HEADS,
        Departure.SOFTMAX_HEADS,
        Departure.QUERIES,
        Departure.NORM_STEPS,
        Departure.TAIL_CHANCE,
        Departure.CACHE_MIXING,
        Departure.NORM_VALUES,
        Departure.CACHE_VALUES,
        Departure.SHORTER,
    }
    assert found[Departure.POSITION_HEADS] == (0, L * (H - 1) * C * K * 2)
    assert found[Departure.SOFTMAX_HEADS] == (0, L * (H - 1) * (3 * C - 1))
    assert found[Departure.QUERIES] == (0, L * H * K)
    assert found[Departure.NORM_STEPS] == (0, 2 * L * (D + 2))
    assert found[Departure.TAIL_CHANCE] == (0, 2)
    assert found[Departure.CACHE_MIXING] == (0, D + N + 2)
    assert found[Departure.NORM_VALUES] == (L * 4 * D, 0)
    assert found[Departure.CACHE_VALUES] == (2, 0)
    assert found[Departure.SHORTER] == (Fraction(-8_296_021, 32), 0)


def test_dense_storage_is_every_value() -> None:
    """Nothing is sparse or quantized: all parameters, θ and λ, and nothing else."""
    assert count(student(), challenge()).storage == 8_304_213 + 2


def test_differences_of_a_quantized_student_by_hand() -> None:
    target = student(bits=9)
    found = amounts(target, challenge())
    assert found[Departure.OWN_BITS] == (Fraction(L * K * C * 23, 32), 0)  # position tables
    assert found[Departure.WEIGHT_SCALES] == (
        4 * L + 3 + 1 + 4,
        0,
    )  # layers, tables, tails, projections
    assert found[Departure.WHOLE_SCALES] == (Fraction(57 * 9, 32), 0)
    # Inputs that stay at 32 bits: position tables, and projected states at the tails' tables.
    wide = L * H * K * C + 21_500 * 64 + 242_735 * 4
    assert found[Departure.WIDEST] == (0, Fraction(wide * 23, 32))


def test_quantizers_of_the_text_make_more_products_wide() -> None:
    """Outputs of LayerNorm and softmax stay at 32 bits: so do qkv, inner and mixed values."""
    code, text = student(bits=9), student(bits=9, activations="text")
    assert sum(text.quantizers(place) for place in text.places) == 4 * L + 1
    more = L * (3 * H * K * D + 768 * D + H * K * C)
    change = count(text, challenge()).operations - count(code, challenge()).operations
    assert change == Fraction(more * 23, 32)
    assert count(text).operations == count(code).operations  # rules paper charge all at b


@pytest.mark.parametrize(
    ("place", "products"),
    [
        (Place.ATTENTION_NORM, {"queries, keys, values"}),
        (Place.ATTENTION_VALUES, {"output"}),
        (Place.FFN_NORM, {"inner"}),
        (Place.RELU, {"outer"}),
        (Place.FFN_OUTPUT, set()),
        (Place.QKV, {"key scores"}),
        (Place.ATTENTION_SOFTMAX, set()),
        (Place.HIDDEN, {"similarities", "words", "other bins", "projection"}),
    ],
)
def test_a_quantizer_narrows_the_products_behind_it(place: Place, products: set[str]) -> None:
    """Values are mixed by probabilities: that product needs both of its inputs quantized."""
    none = student(bits=9, activations="none")
    before = count(none, challenge())
    after = count(Target(**{**vars(none), "places": frozenset({place})}), challenge())
    before_rows = [row for row in before.rows if row.multiplies]
    after_rows = [row for row in after.rows if row.multiplies]
    changed = set()
    for old, new in zip(before_rows, after_rows, strict=True):
        if new.multiplies != old.multiplies:
            assert new.multiplies == old.multiplies * 9 / 32
            changed.add(new.label.name)
    assert changed == products


def test_full_embeddings_are_charged_only_by_the_challenge() -> None:
    full, narrow = student(bits=9, embeddings=False), student(bits=9)
    assert count(full).storage == count(narrow).storage
    words = 3_500 * 257 + 21_500 * 65 + 242_735 * 5 + 2 * 257
    change = count(full, challenge()).storage - count(narrow, challenge()).storage
    assert change == Fraction(words * 23, 32) - 4  # and four scales fewer


def test_scales_for_rows() -> None:
    change = count(student(bits=9, scale_a_row=True), challenge()).storage
    change -= count(student(bits=9), challenge()).storage
    outputs = L * (576 + 256 + 768 + 256) + 267_735 + 2 + 2 * 256 + 64 + 4
    assert change == outputs - (4 * L + 8)


def test_sparse_rows_take_one_add_less_than_they_have_non_zeros() -> None:
    target = student(density=Fraction("0.25"))
    sparse = {
        row.label.name: row
        for row in count(target, challenge()).rows
        if row.label.part == "layer 1"
    }
    assert sparse["output"].adds == 192 * 256 // 4 - 256
    assert sparse["inner"].adds == 768 * 256 // 4  # its biases make up for it
    assert sparse["inner"].multiplies == 768 * 256 // 4


@given(size=st.integers(1, 10**6), data=st.data(), bits=st.integers(2, 32))
def test_a_tensor_takes_the_shorter_form(size: int, data: st.DataObject, bits: int) -> None:
    nonzeros = data.draw(st.integers(0, size))
    sparse, dense = nonzeros * bits + size, size * bits
    assert shorter(size, nonzeros, bits) * 32 == (sparse if sparse < dense else dense)


@given(
    terms=st.integers(0, 300),
    weight=st.integers(2, 16),
    activation=st.integers(2, 16),
    biased=st.booleans(),
)
def test_an_adder_tree_by_building_it(
    terms: int, weight: int, activation: int, biased: bool
) -> None:
    """Pair up real operands with their widths, level by level, as hardware would."""
    level, cost = [weight + activation - 1] * terms, 0
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        cost += sum(min(max(pair), 32) for pair in pairs if len(pair) == 2)
        level = [max(pair) + 1 if len(pair) == 2 else pair[0] for pair in pairs]
    cost += 32 if biased and terms else 0
    rows = [Rows(count=3, nonzeros=terms, biased=biased)]
    assert tree_adds(rows, weight, activation) * 32 == 3 * cost


def test_the_tree_leaves_sums_of_full_numbers_alone() -> None:
    assert amounts(student(), challenge(tree=True))[Departure.TREE] == (0, 0)
    target = student(bits=9)
    before, after = count(target, challenge()), count(target, challenge(tree=True))
    for old, new in zip(before.rows, after.rows, strict=True):
        integers = old.label.name in {"queries, keys, values", "key scores", "values", "output"}
        integers |= old.label.name in {"inner", "outer", "similarities", "projection", "other bins"}
        integers |= old.label.part == "input"
        integers |= (old.label.part, old.label.name) == ("bin 1", "words")
        assert (new.adds < old.adds) == integers, old.label
        assert new.plain_adds == old.plain_adds


def test_the_allowance_halves_values_and_multiplies_but_no_adds() -> None:
    plain, free = count(student(), challenge()), count(student(), challenge(freebie=True))
    assert free.storage == plain.storage / 2
    assert free.total("multiplies") == plain.total("multiplies") / 2
    assert free.total("adds") == plain.total("adds")
    assert free.total("other") == plain.total("other")
    assert free.rules.options == [
        "option --freebie: values as 16-bit",
        "option --freebie: multiplies as 16-bit",
    ]
    # A mask is not a value: it stays as it is.
    pruned = student(density=Fraction("0.5"))
    halved = count(pruned, challenge(freebie=True)).storage
    masks = sum(
        min(m.size, m.size * 16 - m.nonzeros * 16) if m.nonzeros < m.size else 0
        for m in pruned.matrices.values()
    )
    values = sum(m.nonzeros + m.bias_nonzeros for m in pruned.matrices.values()) + L * 4 * D + 2
    assert halved == Fraction(values * 16 + masks, 32)


def test_options_belong_to_the_challenge() -> None:
    with pytest.raises(UsageError, match="no --adds tree"):
        choose_rules("paper", adds="tree")
    with pytest.raises(UsageError, match="no --freebie"):
        choose_rules("paper", freebie=True)
    with pytest.raises(UsageError, match="for models that are not quantized"):
        count(student(bits=9), choose_rules("challenge", freebie=True))


def test_a_projected_state_may_be_quantized_too() -> None:
    """A quantizer of our own behind the projections makes the tails' products narrow."""
    target = student(bits=9)
    more = Target(**{**vars(target), "places": target.places | {Place.PROJECTED}})
    assert more.quantizers(Place.PROJECTED) == 2
    change = count(target, challenge()).operations - count(more, challenge()).operations
    assert change == Fraction((21_500 * 64 + 242_735 * 4) * 23, 32)
    assert count(more, challenge()).storage - count(target, challenge()).storage == 2 * 2
