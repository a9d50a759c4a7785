"""Add a table of n-grams to a packed model, with the share that predicts short texts best.

P = (1 − s) P_without + s P_table is linear in the share s. So two scorings with an engine, one
without a table and one with a share of one half, give the loss of every share.
"""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.artifact import PackedModel, read_packed, write_packed
from micronet_lm.artifact.card import card_costs
from micronet_lm.artifact.packed_target import target_of
from micronet_lm.config import NgramsConfig
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.vocabulary import EOS
from micronet_lm.errors import CorpusError
from micronet_lm.evaluation import perplexity
from micronet_lm.ngrams import estimate_table
from micronet_lm.runtime.engine import Engine
from micronet_lm.runtime.engines import Name, open_engine
from micronet_lm.runtime.evaluation import check_words, evaluate_engine

Chances = NDArray[np.float64]

HALF = 0.5
"""The share with which a table is scored."""
LARGEST = 0.99
"""The largest share: a network that has learned nothing still has a say."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A table's share, found on one half of the texts and tried on the other."""

    share: float
    """The share; 0 where the second half is predicted no better with a table."""
    before: float
    """Perplexity of the second half without the table."""
    after: float
    """Perplexity of the second half with the share that was found."""

    @property
    def sentence(self) -> str:
        """Return what was found, for the user."""
        change = f"short texts kept apart {self.before:.2f} → {self.after:.2f}"
        if not self.share:
            return f"no table of n-grams: it would make {change}"
        return f"table of n-grams with a share of {self.share:.3f}: {change}"


def add_ngrams(
    path: Path, out: Path, corpus: Corpus, config: NgramsConfig, engine: Name = "auto"
) -> tuple[PackedModel, Fit]:
    """Write a packed model with a table of its corpus to `out`; without one where it does not pay.

    Perplexities and costs on the card are those of the new model.
    """
    model = replace(read_packed(path), ngrams=None)
    check_words(model.words, corpus)
    table = estimate_table(
        corpus.split("train"),
        len(model.words),
        order=config.order,
        min_count=config.min_count,
        bits=config.bits,
        budget=config.budget,
        share=HALF,
    )
    with tempfile.TemporaryDirectory() as folder:

        def opened(name: str, own: PackedModel) -> Engine:
            file = Path(folder) / name
            write_packed(file, own)
            return open_engine(file, engine)

        without, half = opened("without", model), opened("half", replace(model, ngrams=table))
        fit = fit_share(without, half, texts_of(corpus, config.tokens))
        if fit.share:
            model = replace(model, ngrams=replace(table, share=float(np.float32(fit.share))))
        whole = opened("whole", model)
        found = {
            split: evaluate_engine(whole, corpus.split(split)).perplexity
            for split in ("valid", "test")
        }
    model = replace(model, card=_card(model, corpus, config, found))
    write_packed(out, model)
    return model, fit


def texts_of(corpus: Corpus, length: int) -> list[NDArray[np.int64]]:
    """Cut texts of this length out of the validation split, each from a line's beginning on.

    Each begins with the line end before it. A split that is too short for two is halved.
    """
    line_end = corpus.vocabulary.words.index(EOS)
    ids = np.asarray(corpus.split("valid")).astype(np.int64)
    ends = np.flatnonzero(ids == line_end)
    texts, at = [], 0
    while at + length <= len(ids):
        texts.append(np.concatenate([[line_end], ids[at : at + length]]))
        later = ends[np.searchsorted(ends, at + length - 1) :]
        if not len(later):
            break
        at = int(later[0]) + 1
    if len(texts) > 1:
        return texts
    if len(ids) < 4:
        raise CorpusError(
            f"the validation split of {len(ids)} tokens is too short to fit the share of n-grams: "
            "use more text or leave the section ngrams out"
        )
    return [ids[: len(ids) // 2], ids[len(ids) // 2 :]]


def fit_share(without: Engine, half: Engine, texts: Sequence[NDArray[np.int64]]) -> Fit:
    """Find the share on the first half of the texts; 0 where the second half is no better."""
    middle = len(texts) // 2
    plain = [np.exp(own.astype(np.float64)) for own in without.score_batch(texts)]
    mixed = [np.exp(own.astype(np.float64)) for own in half.score_batch(texts)]

    def halved(parts: Sequence[Chances]) -> tuple[Chances, Chances]:
        return np.concatenate(parts[:middle]), np.concatenate(parts[middle:])

    (first, second), (first_mixed, second_mixed) = halved(plain), halved(mixed)
    found = _best(first, (first_mixed - first) / HALF)
    before = _loss(second, second_mixed - second, 0.0)
    after = _loss(second, (second_mixed - second) / HALF, found)
    return Fit(
        share=found if after < before else 0.0, before=perplexity(before), after=perplexity(after)
    )


def _best(plain: Chances, slope: Chances) -> float:
    """Return the share with the smallest loss, which is convex, by its derivative's sign."""
    low, high = 0.0, LARGEST
    while high - low > 1e-4:
        middle = (low + high) / 2
        falling = float((slope / (plain + middle * slope)).sum()) > 0
        low, high = (middle, high) if falling else (low, middle)
    return round((low + high) / 2, 3)


def _loss(plain: Chances, slope: Chances, share: float) -> float:
    return -math.fsum(np.log(plain + share * slope)) / len(plain)


def _card(
    model: PackedModel, corpus: Corpus, config: NgramsConfig, found: dict[str, float]
) -> dict[str, Any]:
    shares = counted_shares(corpus.split("test"), model.shape)
    target = target_of(model, "model", shares)
    recipe = {key: value for key, value in model.card.get("recipe", {}).items() if key != "ngrams"}
    if model.ngrams:
        recipe["ngrams"] = config.model_dump(mode="json", exclude_none=True)
    return {**model.card, "recipe": recipe, "perplexity": found, **card_costs(target)}
