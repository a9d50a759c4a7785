"""A target from a recipe alone: the shape says everything, because nothing is trained yet."""

from micronet_lm.accounting.compression_plan import evenly
from micronet_lm.accounting.target import Target
from micronet_lm.config import ModelConfig, Recipe
from micronet_lm.errors import ConfigError, UsageError
from micronet_lm.layout import slots

PAPER_BINS = (267_735, (3_500, 25_000))
"""Vocabulary and cutoffs that the paper's shares belong to."""

PAPER_SHARES = (198_232, 35_479, 11_858)
"""WikiText-103's test tokens in the paper's three bins."""


def describe(
    recipe: Recipe,
    name: str,
    shares: tuple[int, ...] | None = None,
    shares_from: str = "given",
) -> Target:
    """Describe the dense model of a recipe; `shares` are test tokens by bin, if they are known."""
    shape = recipe.model
    if shape.vocabulary is None:
        raise ConfigError(
            f"{name} does not say how many words it has: name its corpus with --corpus, or give "
            "--model.vocabulary"
        )
    if shares is None:
        shares, shares_from = known_shares(shape)
    check_shares(shares, shape)
    return Target(
        name=name,
        shape=shape,
        matrices={slot.name: evenly(slot, slot.outputs * slot.inputs) for slot in slots(shape)},
        cache=recipe.cache.size if recipe.cache else 0,
        shares=shares,
        shares_from=shares_from,
    )


def known_shares(shape: ModelConfig) -> tuple[tuple[int, ...], str]:
    """Test tokens by bin that no corpus is needed for, and where they come from."""
    if not shape.cutoffs:
        return (1,), "one bin"
    if (shape.vocabulary, shape.cutoffs) == PAPER_BINS:
        return PAPER_SHARES, "WikiText-103's test split"
    raise UsageError(
        f"how many test tokens fall into the bins of the cutoffs {shape.cutoffs} is not known: "
        "name a corpus with --corpus, or give the numbers with --shares"
    )


def check_shares(shares: tuple[int, ...], shape: ModelConfig) -> None:
    """Refuse shares that do not fit the bins."""
    bins = len(shape.cutoffs) + 1
    if len(shares) != bins:
        raise UsageError(
            f"--shares has {len(shares)} numbers, but the model has {bins} bins; give the test "
            "tokens of each bin, like 198232,35479,11858"
        )
    if min(shares) < 0 or not sum(shares):
        raise UsageError(
            f"--shares {','.join(map(str, shares))} are not numbers of tokens; give one of 0 or "
            "more for each bin, and not all 0"
        )
