"""The cache figures' data as a stage: what it says fits into a record that outlives the runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.corpus import Corpus
from micronet_lm.pipeline import Stage
from micronet_lm.pipeline.stage import Product
from micronet_lm.report.cache_effect import By, cache_effect, token_gaps
from micronet_lm.report.losses import text_losses
from micronet_lm.report.tables import CACHE_FIGURES
from micronet_lm.training import Run

COMPARED = ("no cache", "cache of 1000")
"""Names of the models that are compared with a cache of 2000."""

REFERENCE = "cache of 2000"
"""Name of the model that they are compared with."""

_ROLES = ("none", "small", "large")

_RARE = 1000
"""Rank up to which the paper calls a word frequent."""

_ENDLESS = 10**9

KINDS: Mapping[str, tuple[By, int, int]] = {
    "words of rank above 1000": ("tokens", _RARE + 1, _ENDLESS),
    "gaps below 100": ("gaps", 1, 100),
    "gaps from 100 to 2000": ("gaps", 100, 2000),
    "gaps from 1000 to 2000": ("gaps", 1000, 2000),
    "gaps of 2000 and more": ("gaps", 2000, _ENDLESS),
}
"""Kinds of tokens: the figure that sorts them, and the first and the next value there."""


def effect_stage(corpus: Stage, students: Sequence[Stage]) -> Stage:
    """Return the stage that compares the losses of no cache, a small and a large one."""
    needs = {"corpus": corpus, **dict(zip(_ROLES, students, strict=True))}
    return Stage(name="cache-effect", folder="effect", settings={}, needs=needs, work=_compare)


def _compare(here: Path, inputs: Mapping[str, Product]) -> dict[str, Any]:
    here.mkdir(parents=True, exist_ok=True)
    ids = Corpus.open(inputs["corpus"].path).split("valid")
    names = (*COMPARED, REFERENCE)
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
    values = {"tokens": ids[1:].astype(np.int64) + 1, "gaps": token_gaps(ids)[1:]}
    kinds = {"all tokens": np.ones(len(values["gaps"]), bool)}
    for kind, (by, first, after) in KINDS.items():
        kinds[kind] = (values[by] >= first) & (values[by] < after)
    kinds["first occurrences"] = values["gaps"] == 0
    found = {}
    for name in COMPARED:
        apart = losses[name].astype(np.float64) - losses[REFERENCE]
        found[name] = {kind: float(apart[own].sum() / len(apart)) for kind, own in kinds.items()}
    return found


def shares(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the share of each kind of token, from the data of the figures.

    Bins do not end where kinds do; between their edges the share is interpolated.
    """
    found = {}
    for what, by in CACHE_FIGURES.items():
        edges, below = np.log(figures[what]["edges"]), [0.0, *figures[what]["sizes"]]
        for kind, (own, first, after) in KINDS.items():
            if own == by:
                low, high = np.interp(np.log([first, after]), edges, below)
                found[kind] = float(high - low)
    return found
