"""The model card: a packed model's name, origin and costs, as plain JSON values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import micronet_lm
from micronet_lm.accounting import PAPER, Target, challenge, count
from micronet_lm.accounting.summary import number
from micronet_lm.config import ModelConfig, Recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ArtifactError
from micronet_lm.evaluation import perplexity
from micronet_lm.runs import open_checkpoint
from micronet_lm.strict_json import short

_TRAINING = ("steps", "batch", "window", "learning_rate", "seed")
"""Keys of the training in a card; the others are in the run."""


def make_card(
    *,
    name: str,
    recipe: Recipe,
    corpus: Corpus,
    target: Target,
    perplexities: Mapping[str, float],
    made_by: str,
) -> dict[str, Any]:
    """Return a model's card; `perplexities` are by split, `made_by` is the packing command."""
    manifest = corpus.manifest
    return {
        "name": name,
        "micronet": micronet_lm.__version__,
        "made_by": made_by,
        "corpus": {
            "source": Path(manifest.source).name,  # without the path on the maker's disk
            "tokenizer": manifest.tokenizer,
            "words": manifest.words,
            "train_tokens": manifest.tokens["train"],
            "fingerprint": corpus.fingerprint,
        },
        "recipe": _essentials(recipe),
        "perplexity": dict(perplexities),
        **card_costs(target),
    }


def card_costs(target: Target) -> dict[str, Any]:
    """Return what a card says of a model's costs."""
    return {
        "shares": list(target.shares),
        "accounting": {rules.name: _totals(target, rules.name) for rules in (PAPER, challenge())},
    }


def card_shares(card: Mapping[str, Any], shape: ModelConfig) -> tuple[int, ...] | None:
    """Return the card's number of test tokens per bin, if any; refuse one that does not fit."""
    shares = card.get("shares")
    if shares is None:
        return None
    whole = isinstance(shares, list) and all(type(n) is int and n >= 0 for n in shares)
    if not whole or len(shares) != len(shape.cutoffs) + 1 or not sum(shares):
        raise ArtifactError(
            f"the card's shares must be one number of test tokens for each of the model's "
            f"{len(shape.cutoffs) + 1} bins, got {short(shares)}: give --shares or --corpus"
        )
    return tuple(shares)


def known_perplexity(checkpoint: Path) -> dict[str, float]:
    """Return the validation perplexity stored in a checkpoint, if any."""
    with open_checkpoint(checkpoint) as reader:
        loss = reader.progress.best_loss
    return {} if loss is None else {"valid": perplexity(loss)}


def _essentials(recipe: Recipe) -> dict[str, Any]:
    """Return the recipe's sections of techniques that were used."""
    whole = recipe.model_dump(mode="json", exclude_none=True)
    del whole["corpus"], whole["model"]  # stored elsewhere in the file
    whole["train"] = {key: whole["train"][key] for key in _TRAINING}
    return whole


def _totals(target: Target, rules: str) -> dict[str, Any]:
    account = count(target, challenge() if rules == "challenge" else PAPER)
    return {
        "parameters": target.parameters,
        "storage": number(account.storage),
        "operations": number(account.operations),
        "score": float(account.score),
    }
