"""Targets of the accounting from what a user names: a recipe, a run or a packed file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from micronet_lm.accounting import Target, describe, examine, stage_targets
from micronet_lm.accounting.recipe_target import known_shares
from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.artifact.card import card_shares
from micronet_lm.artifact.packed_target import target_of
from micronet_lm.artifact.packing import corpus_of_run
from micronet_lm.artifact.reader import read_packed
from micronet_lm.config import ModelConfig, Recipe, load_recipe, merge_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError, CorpusError, UsageError
from micronet_lm.runs import Which

Shares = tuple[int, ...]


def recipe_targets(
    name: str, overrides: Mapping[str, Any], corpus: Path | None, shares: Shares | None
) -> dict[str, Target]:
    """Describe the model of a preset or a recipe's file after each stage, its teacher first.

    A corpus tells its words and shares.
    """
    recipe, origin = load_recipe(name, overrides), "given"
    if corpus is not None:
        recipe, opened = _with_words_of(recipe, corpus)
        if shares is None:
            shares, origin = _shares_of(opened, recipe.model)
    found = {}
    if recipe.distill is not None and recipe.distill.teacher is not None:
        words = {"model.vocabulary": recipe.model.vocabulary}
        teacher = merge_recipe(load_recipe(recipe.distill.teacher), words)
        # A teacher with bins of its own has other shares, which only a corpus tells.
        if teacher.model.cutoffs == recipe.model.cutoffs:
            found["teacher"] = describe(teacher, recipe.distill.teacher, shares, origin)
    return {**found, **stage_targets(recipe, name, shares, origin)}


def _with_words_of(recipe: Recipe, corpus: Path) -> tuple[Recipe, Corpus]:
    """Return the recipe with the size of a corpus's vocabulary, and the corpus."""
    opened = Corpus.open(corpus)
    size, wanted = len(opened.vocabulary), recipe.model.vocabulary
    if wanted is not None and wanted != size:
        raise ConfigError(
            f"model.vocabulary is {wanted:,} but {opened.path} has {size:,} words; "
            "name the corpus that the recipe is made for, or leave --corpus out"
        )
    return merge_recipe(recipe, {"model.vocabulary": size}), opened


def run_target(
    path: Path,
    recipe: Recipe,
    corpus: Path | None,
    shares: Shares | None,
    *,
    checkpoint: Which = "best",
) -> Target:
    """Describe the model of a run; `recipe` is the run's own, perhaps with another cache."""
    origin = "given"
    if shares is None:
        shares, origin = _shares_of(corpus_of_run(path, corpus), recipe.model)
    return examine(path, recipe, shares, shares_from=origin, checkpoint=checkpoint)


def packed_target(path: Path, corpus: Path | None, shares: Shares | None) -> Target:
    """Describe a packed file; its card tells the shares where nothing else does."""
    model, origin = read_packed(path), "given"
    if shares is None and corpus is not None:
        opened = Corpus.open(corpus)
        if tuple(model.words) != opened.vocabulary.words:
            raise CorpusError(
                f"{opened.path} has another vocabulary than {path}; name the corpus that the model "
                "was made with, or give --shares"
            )
        shares, origin = _shares_of(opened, model.shape)
    elif shares is None:
        shares, origin = card_shares(model.card, model.shape), "the card"
    if shares is None:
        shares, origin = known_shares(model.shape)
    return target_of(model, str(path), shares, shares_from=origin)


def check_run_keys(overrides: Mapping[str, Any]) -> None:
    """Refuse keys of a recipe that cannot be set for a run that is trained."""
    for key in overrides:
        if not key.startswith("cache."):
            raise UsageError(
                f"--{key} cannot be set for a run: its shape is that of its checkpoint; "
                "only --cache.size can, or count the run's recipe"
            )


def _shares_of(corpus: Corpus, shape: ModelConfig) -> tuple[Shares, str]:
    return counted_shares(corpus.split("test"), shape), f"the test split of {corpus.path}"
