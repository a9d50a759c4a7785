"""A target from a recipe alone, before any training."""

from micronet_lm.accounting.compression_plan import evenly
from micronet_lm.accounting.target import Target
from micronet_lm.config import ModelConfig, Recipe
from micronet_lm.errors import ConfigError, UsageError
from micronet_lm.layout import slots

PAPER_BINS = (267_735, (3_500, 25_000))
"""Vocabulary and cutoffs of the paper's shares."""

PAPER_SHARES = (198_232, 35_479, 11_858)
"""Number of WikiText-103's test tokens in each of the paper's three bins."""

MOST_LAYERS = 2_000
"""Most layers of a model that is counted without its file."""


def describe(
    recipe: Recipe,
    name: str,
    shares: tuple[int, ...] | None = None,
    shares_from: str = "given",
) -> Target:
    """Return the target of a recipe's dense model; `shares` are test tokens by bin, if known."""
    shape = recipe.model
    if shape.vocabulary is None:
        raise ConfigError(
            f"{name} has no vocabulary size: give its corpus with --corpus, or give "
            "--model.vocabulary"
        )
    if shape.layers > MOST_LAYERS:
        raise ConfigError(
            f"{name}: model.layers must be at most {MOST_LAYERS:,} to be counted, got "
            f"{shape.layers:,}: every layer has rows of its own"
        )
    if shares is None:
        shares, shares_from = known_shares(shape)
    check_shares(shares, shape)
    return Target(
        name=name,
        shape=shape,
        matrices={slot.name: evenly(slot, slot.outputs * slot.inputs) for slot in slots(shape)},
        cache=recipe.cache.size if recipe.cache else 0,
        fades=recipe.cache is not None and recipe.cache.fade > 0,
        shares=shares,
        shares_from=shares_from,
    )


def known_shares(shape: ModelConfig) -> tuple[tuple[int, ...], str]:
    """Return test tokens by bin that are known without a corpus, and their source."""
    if not shape.cutoffs:
        return (1,), "one bin"
    if (shape.vocabulary, shape.cutoffs) == PAPER_BINS:
        return PAPER_SHARES, "WikiText-103's test split"
    raise UsageError(
        f"the number of test tokens in the bins of the cutoffs {shape.cutoffs} is not known: "
        "give a corpus with --corpus, or the numbers with --shares"
    )


def check_shares(shares: tuple[int, ...], shape: ModelConfig) -> None:
    """Refuse shares that do not match the bins."""
    bins = len(shape.cutoffs) + 1
    if len(shares) != bins:
        raise UsageError(
            f"--shares must have one number for each of the model's {bins} bins, got "
            f"{len(shares)}: give the test tokens of each bin, like 198232,35479,11858"
        )
    if min(shares) < 0 or not sum(shares):
        raise UsageError(
            f"--shares must be 0 or more and not all 0, got {','.join(map(str, shares))}: give the "
            "test tokens of each bin"
        )
