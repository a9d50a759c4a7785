"""Rules `paper` give the published numbers, to the printed digit."""

from fractions import Fraction

import pytest

from micronet_lm.accounting import PAPER, Plan, Target, carry_out, count, describe
from micronet_lm.accounting.compression_plan import evenly
from micronet_lm.accounting.formulas import at_bits, score
from micronet_lm.config import load_recipe
from micronet_lm.layout import prunable_sizes, slots


def student(**keys: int) -> Target:
    names = {"context": "model.context", "cache": "cache.size"}
    overrides = {names[key]: value for key, value in keys.items()}
    return describe(load_recipe("paper/student", overrides), "paper/student")


@pytest.mark.parametrize(
    ("keys", "parameters", "operations"),
    [
        ({"context": 65}, 8_298_069, "17219771.76"),
        ({"context": 97}, 8_304_213, "17427387.76"),
        ({"context": 129}, 8_310_357, "17635003.76"),
        ({"context": 257}, 8_334_933, "18465467.76"),
        ({"context": 513}, 8_384_085, "20126395.76"),
        ({"context": 1025}, 8_482_389, "23448251.76"),
        ({"cache": 0}, 8_304_213, "17427387.76"),
        ({"cache": 1000}, 8_304_213, "17941386.76"),
        ({"cache": 2000}, 8_304_213, "18455386.76"),
    ],
)
def test_every_row_of_the_table(keys: dict[str, int], parameters: int, operations: str) -> None:
    target = student(**keys)
    assert target.parameters == parameters
    assert f"{float(count(target).operations):.2f}" == operations


@pytest.mark.parametrize(
    ("preset", "parameters"),
    [("paper/teacher", 53_859_529), ("paper/full-embedding", 73_566_103)],
)
def test_parameters_of_the_other_models(preset: str, parameters: int) -> None:
    assert describe(load_recipe(preset), preset).parameters == parameters


def test_storage_of_the_published_model_from_its_counts() -> None:
    """5,326,376 of 8,296,021 weights not zero, wherever they are; 9 bits; 57 quantizers."""
    target = student(cache=3000)
    zeros = 8_296_021 - 5_326_376
    matrices = dict(target.matrices)
    for slot in slots(target.shape):
        if slot.name in prunable_sizes(target.shape):
            size = slot.outputs * slot.inputs
            gone = min(zeros, size // 2)
            matrices[slot.name] = evenly(slot, size - gone)
            zeros -= gone
    assert zeros == 0
    pruned = Target(
        name="published",
        shape=target.shape,
        matrices=matrices,
        cache=3000,
        shares=target.shares,
    )
    published = carry_out(Plan(bits=9), pruned)
    weights = published.matrices.values()
    assert sum(m.size + m.bias_size for m in weights) == 8_296_021
    assert sum(m.nonzeros + m.bias_nonzeros for m in weights) == 5_326_376
    assert sum(published.quantizers(place) for place in published.places) == 57
    assert float(count(published).storage) == 1_757_391.875


def test_score_of_the_published_model_from_its_totals() -> None:
    multiplies = at_bits(Fraction("6301457.19"), 9)
    assert float(multiplies) == pytest.approx(1_772_284.84, abs=0.01)
    operations = multiplies + Fraction("6189183.40") + 845_247
    assert float(operations) == pytest.approx(8_806_715.24, abs=0.01)
    assert f"{float(score(Fraction('1757391.875'), operations)):.9f}"[:9] == "0.0387468"


def test_other_operations_of_the_published_model() -> None:
    """They depend on no density, so the shape alone gives the published number."""
    assert count(student(cache=3000)).total("other") == 845_247


@pytest.mark.parametrize(("density", "bits"), [("1", 32), ("0.642", 9), ("0.1", 4)])
def test_a_pruned_and_quantized_student_by_hand(density: str, bits: int) -> None:
    """The authors' counting once more, as plain sums over the student's matrices."""
    share, n_cache, context = Fraction(density), 3000, 97
    target = carry_out(Plan(density=share, bits=bits), student(cache=n_cache))
    multiplies = adds = Fraction(0)
    stored = mask = 0

    def matrix(
        out: int, into: int, *, times: Fraction = Fraction(1), bias: bool, full: bool
    ) -> None:
        nonlocal multiplies, adds, stored, mask
        nonzeros = out * into if full else round(share * out * into)
        part = Fraction(nonzeros, out * into)
        multiplies += times * part * out * into
        adds += times * part * out * (into - 1) + (out if bias else 0)
        stored += nonzeros + (out if bias else 0)
        mask += out * into + (out if bias else 0)

    tokens = (198_232, 35_479, 11_858)
    for width, number in ((64, tokens[1]), (4, tokens[2])):
        matrix(256, width, times=Fraction(number, sum(tokens)), bias=False, full=False)
    others = 0
    for _ in range(8):
        others += 6 * 256
        matrix(8 * 3 * 24, 256, bias=True, full=False)
        multiplies += 8 * context * 24  # queries with keys
        adds += 8 * context * 23
        multiplies += context * 24  # queries with positions, and the sum of both
        adds += context * 23 + context
        stored, mask = stored + 24 * context, mask + 24 * context
        others += 3 * context - 1
        multiplies += 8 * 24 * context  # probabilities with values
        adds += 8 * 24 * (context - 1)
        matrix(256, 8 * 24, bias=False, full=False)
        adds += 256
        others += 6 * 256
        matrix(768, 256, bias=True, full=False)
        others += 768
        matrix(256, 768, bias=True, full=False)
        adds += 256
    matrix(2, 256, bias=True, full=False)
    for words, width in ((3_500, 256), (21_500, 64), (242_735, 4)):
        matrix(words, width, bias=True, full=False)
        others += 3 * (words + 2 * (width == 256)) - 1
    for width in (64, 4):
        matrix(width, 256, bias=False, full=False)
    multiplies += 256 * n_cache
    adds += 255 * n_cache
    others += 3 * n_cache - 1

    account = count(target, PAPER)
    assert account.total("plain_multiplies") == multiplies
    assert account.total("multiplies") == multiplies * bits / 32
    assert account.total("adds") == adds
    assert account.total("other") == others
    quantizers = 57 * (1 + Fraction(32 - bits, 32)) if bits < 32 else 0
    assert account.storage == Fraction(stored * bits + mask, 32) + quantizers
