"""The model card: what a packed model is, where it comes from, what it costs. Plain JSON values."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

import micronet_lm
from micronet_lm.accounting import PAPER, Target, challenge, count
from micronet_lm.accounting.summary import number
from micronet_lm.config import Recipe
from micronet_lm.corpus import Corpus
from micronet_lm.evaluation import perplexity

_TRAINING = ("steps", "batch", "window", "learning_rate", "seed")
"""What a card says of the training; all the rest is in the run."""


def make_card(
    *,
    name: str,
    recipe: Recipe,
    corpus: Corpus,
    target: Target,
    perplexities: Mapping[str, float],
    made_by: str,
) -> dict[str, Any]:
    """Describe a model; `perplexities` are by split, `made_by` is the command that packs it."""
    manifest = corpus.manifest
    return {
        "name": name,
        "micronet": micronet_lm.__version__,
        "made_by": made_by,
        "corpus": {
            "source": Path(manifest.source).name,  # not where it lay on the maker's disk
            "tokenizer": manifest.tokenizer,
            "words": manifest.words,
            "train_tokens": manifest.tokens["train"],
            "fingerprint": corpus.fingerprint,
        },
        "recipe": _essentials(recipe),
        "perplexity": dict(perplexities),
        "accounting": {rules.name: _totals(target, rules.name) for rules in (PAPER, challenge())},
    }


def known_perplexity(checkpoint: Path) -> dict[str, float]:
    """The validation perplexity that a checkpoint's model was chosen for, if it says one."""
    try:
        with safe_open(checkpoint, framework="numpy") as file:
            loss = json.loads((file.metadata() or {})["progress"])["best_loss"]
        return {} if loss is None else {"valid": perplexity(float(loss))}
    except (SafetensorError, OSError, KeyError, ValueError, TypeError):
        return {}


def _essentials(recipe: Recipe) -> dict[str, Any]:
    """The sections that say what was done, without those that were not."""
    whole = recipe.model_dump(mode="json", exclude_none=True)
    del whole["corpus"], whole["model"]  # said elsewhere in the file
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
