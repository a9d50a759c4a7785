"""The cache figures' data as a stage: what it says fits into a record that outlives the runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.corpus import Corpus
from micronet_lm.pipeline import Stage
from micronet_lm.pipeline.stage import Product
from micronet_lm.report.cache_effect import cache_effect, token_gaps
from micronet_lm.report.losses import text_losses
from micronet_lm.report.tables import CACHE_FIGURES
from micronet_lm.training import Run

COMPARED = ("no cache", "cache of 1000")
"""Names of the models that are compared with a cache of 2000."""

_REFERENCE = "cache of 2000"
_ROLES = ("none", "small", "large")
_RARE = 1000
"""Rank from which the paper calls a word rare."""


def effect_stage(corpus: Stage, students: Sequence[Stage]) -> Stage:
    """Return the stage that compares the losses of no cache, a small and a large one."""
    needs = {"corpus": corpus, **dict(zip(_ROLES, students, strict=True))}
    return Stage(name="cache-effect", folder="effect", settings={}, needs=needs, work=_compare)


def _compare(here: Path, inputs: Mapping[str, Product]) -> dict[str, Any]:
    here.mkdir(parents=True, exist_ok=True)
    ids = Corpus.open(inputs["corpus"].path).split("valid")
    names = (*COMPARED, _REFERENCE)
    losses = {
        name: text_losses(Run.open(inputs[role].path).model(), ids)
        for name, role in zip(names, _ROLES, strict=True)
    }
    figures = {what: cache_effect(ids, losses, by).as_json() for what, by in CACHE_FIGURES.items()}
    return {"sums": sums(ids, losses), "figures": figures}


def sums(
    ids: NDArray[np.unsignedinteger], losses: Mapping[str, NDArray[np.floating]]
) -> dict[str, dict[str, float]]:
    """Return what each model loses against the reference, in nats per token, by kind of token."""
    ranks, gaps = ids[1:].astype(np.int64) + 1, token_gaps(ids)[1:]
    kinds = {
        "all tokens": np.ones(len(gaps), bool),
        "words of rank above 1000": ranks > _RARE,
        "gaps below 100": (gaps > 0) & (gaps < 100),
        "gaps from 100 to 2000": (gaps >= 100) & (gaps < 2000),
        "gaps from 1000 to 2000": (gaps >= 1000) & (gaps < 2000),
        "gaps of 2000 and more": gaps >= 2000,
        "first occurrences": gaps == 0,
    }
    found = {}
    for name in COMPARED:
        apart = losses[name].astype(np.float64) - losses[_REFERENCE]
        found[name] = {kind: float(apart[own].sum() / len(apart)) for kind, own in kinds.items()}
    return found


def claimed(own: Mapping[str, float], quantity: str) -> float:
    """Return a number that a claim is about, from one model's sums."""
    if quantity == "rare words' part above a half":
        return own["words of rank above 1000"] / own["all tokens"] - 0.5
    if quantity.startswith("minus "):
        return -own[quantity.removeprefix("minus ")]
    return own[quantity]
