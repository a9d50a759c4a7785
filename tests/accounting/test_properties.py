"""What must hold for every model: less of anything never costs more."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from micronet_lm.accounting import (
    PAPER,
    Account,
    Plan,
    Rules,
    Target,
    carry_out,
    challenge,
    count,
    describe,
    differences,
)
from micronet_lm.config import CacheConfig, ModelConfig, Recipe

RULES = st.sampled_from([PAPER, challenge(), challenge(tree=True)])
DENSITIES = st.fractions(0, 1, max_denominator=1000)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    bins = draw(st.integers(1, 3))
    edges = sorted(draw(st.sets(st.integers(20, 400), min_size=bins, max_size=bins)))
    width = draw(st.integers(8, 24))
    return Recipe(
        model=ModelConfig(
            vocabulary=edges[-1],
            cutoffs=tuple(edges[:-1]),
            embedding_widths=tuple(
                draw(st.sampled_from([width, 4, width + 3])) for _ in range(bins)
            ),
            width=width,
            layers=draw(st.integers(1, 3)),
            heads=draw(st.integers(1, 4)),
            key_width=draw(st.integers(2, 8)),
            value_width=draw(st.integers(2, 8)),
            ffn_width=draw(st.integers(8, 32)),
            context=draw(st.integers(1, 20)),
        ),
        cache=CacheConfig(size=draw(st.integers(1, 50))) if draw(st.booleans()) else None,
    )


@st.composite
def targets(draw: st.DrawFn) -> Target:
    recipe = draw(recipes())
    bins = len(recipe.model.cutoffs) + 1
    shares = draw(st.tuples(*[st.integers(1, 1000)] * bins))
    return describe(recipe, "any", shares)


def never_more(small: Account, large: Account) -> None:
    assert small.storage <= large.storage
    assert small.operations <= large.operations
    assert small.score <= large.score
    for kind in ("multiplies", "adds", "other"):
        assert small.total(kind) <= large.total(kind)


@given(targets(), RULES, DENSITIES, DENSITIES, st.sampled_from([4, 9, 32]))
def test_more_sparsity_never_costs_more(
    target: Target, rules: Rules, one: Fraction, two: Fraction, bits: int
) -> None:
    low, high = sorted((one, two))
    sparse = carry_out(Plan(density=low, bits=bits), target)
    full = carry_out(Plan(density=high, bits=bits), target)
    never_more(count(sparse, rules), count(full, rules))
    assert sparse.parameters == full.parameters


@given(
    targets(),
    RULES,
    st.integers(2, 31),
    st.integers(2, 31),
    st.sampled_from(["code", "text", "none"]),
    st.booleans(),
)
def test_fewer_bits_never_cost_more(
    target: Target, rules: Rules, one: int, two: int, activations: str, embeddings: bool
) -> None:
    low, high = (
        Plan(bits=bits, activations=activations, embeddings=embeddings)
        for bits in sorted((one, two))
    )
    never_more(count(carry_out(low, target), rules), count(carry_out(high, target), rules))


@given(targets(), RULES, st.integers(2, 16))
def test_quantization_never_costs_operations(target: Target, rules: Rules, bits: int) -> None:
    """Storage of a tiny model may grow by scales and ranges; operations never do."""
    narrow = count(carry_out(Plan(bits=bits), target), rules)
    assert narrow.operations <= count(target, rules).operations


@given(targets(), RULES, st.integers(0, 5000), st.integers(0, 5000))
def test_a_smaller_cache_never_costs_more(target: Target, rules: Rules, one: int, two: int) -> None:
    low, high = sorted((one, two))
    small, large = (Target(**{**vars(target), "cache": size}) for size in (low, high))
    never_more(count(small, rules), count(large, rules))


@given(targets(), DENSITIES, st.integers(2, 32), st.booleans())
def test_differences_always_add_up(
    target: Target, density: Fraction, bits: int, tree: bool
) -> None:
    compressed = carry_out(Plan(density=density, bits=bits), target)
    rules = challenge(tree=tree, freebie=bits == 32)
    found, paper, whole = (
        differences(compressed, rules),
        count(compressed),
        count(compressed, rules),
    )
    assert paper.storage + sum(item.storage for item in found) == whole.storage
    assert paper.operations + sum(item.operations for item in found) == whole.operations


@given(recipes(), RULES, DENSITIES, st.sampled_from([9, 32]))
def test_a_full_embedding_is_one_bin(
    recipe: Recipe, rules: Rules, density: Fraction, bits: int
) -> None:
    """One bin has no projections, no entries for other bins, and one softmax over all words."""
    width, words = recipe.model.width, recipe.model.vocabulary
    assert words
    single = recipe.model.model_copy(update={"cutoffs": (), "embedding_widths": (width,)})
    full = recipe.model_copy(update={"model": single})
    account = count(carry_out(Plan(density=density, bits=bits), describe(full, "full")), rules)
    by_name = {
        (row.label.part, row.label.name): row for row in account.rows if row.label.part != "input"
    }
    assert not [row for row in account.rows if row.label.part == "input"]
    assert {part for part, _ in by_name if part.startswith("bin")} == {"bin 1"}
    assert ("bin 1", "other bins") not in by_name
    row = by_name["bin 1", "words"]
    nonzeros = round(density * words * width)
    assert row.plain_multiplies == nonzeros
    assert row.nonzeros == nonzeros + words
    mixed = int(bool(recipe.cache) and rules.name == "challenge")
    assert by_name["bin 1", "softmax"].other == 3 * words - 1 + mixed
    # The same bin as the first of two differs by the entry for the other, and by nothing else.
    if words > 2:
        two = recipe.model.model_copy(
            update={"cutoffs": (words - 1,), "embedding_widths": (width, width)}
        )
        plan = Plan(density=Fraction(1), bits=bits)
        split = describe(recipe.model_copy(update={"model": two}), "two", (1, 1))
        whole = describe(full, "full")
        change = split.parameters - whole.parameters
        assert change == width + 1
        a, b = count(carry_out(plan, split), rules), count(carry_out(plan, whole), rules)
        assert a.total("plain_multiplies") - b.total("plain_multiplies") == width
        assert a.total("plain_adds") - b.total("plain_adds") == width
