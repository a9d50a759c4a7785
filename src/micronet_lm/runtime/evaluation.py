"""Perplexity with an engine: every token after the first is predicted exactly once."""

import json
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.packing import corpus_of_run, pack_run
from micronet_lm.corpus import Corpus
from micronet_lm.errors import CorpusError
from micronet_lm.evaluation import BinLoss, Evaluation, perplexity
from micronet_lm.progress import bar
from micronet_lm.runs import Which
from micronet_lm.runtime.engine import Engine, Ids
from micronet_lm.runtime.engines import Name, open_engine


def evaluate_engine(engine: Engine, ids: Ids, threads: int = 1) -> Evaluation:
    """Measure the perplexity of a text of ids."""
    begin = time.perf_counter()
    losses = -engine.score(ids, threads).astype(np.float64)
    seconds = time.perf_counter() - begin
    loss = float(losses.mean())
    return Evaluation(
        loss=loss,
        perplexity=perplexity(loss),
        bits_per_token=loss / math.log(2),
        tokens=len(losses),
        seconds=seconds,
        bins=_bins(json.loads(engine.metadata)["model"]["cutoffs"], ids[1:], losses),
    )


def _bins(cutoffs: Sequence[int], words: Ids, losses: NDArray[np.float64]) -> tuple[BinLoss, ...]:
    number = np.searchsorted(cutoffs, words, side="right")
    tokens = np.bincount(number, minlength=len(cutoffs) + 1).tolist()
    totals = np.bincount(number, losses, minlength=len(cutoffs) + 1).tolist()
    return tuple(
        BinLoss(first=first, tokens=count, loss=total / count if count else None)
        for first, count, total in zip((0, *cutoffs), tokens, totals, strict=True)
    )


def check_words(vocabulary: Sequence[str], corpus: Corpus) -> None:
    """Refuse a corpus whose ids mean other words than the model's."""
    words = corpus.vocabulary.words
    if len(vocabulary) != len(words) or any(
        own != other for own, other in zip(vocabulary, words, strict=True)
    ):
        raise CorpusError(
            f"{corpus.path} has another vocabulary ({len(words):,} words) than the model "
            f"({len(vocabulary):,}); name the corpus that the model was made with, or give --text"
        )


def packed_perplexities(
    run: Path, splits: Sequence[str], engine: Name, *, corpus: Path | None, checkpoint: Which
) -> dict[str, float]:
    """Pack a run into a temporary file, and measure that on splits of the run's corpus."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        pack_run(run, file, corpus=corpus, checkpoint=checkpoint)
        opened, text = open_engine(file, engine), corpus_of_run(run, corpus)
        found = {}
        for split in dict.fromkeys(splits):
            with bar(f"Evaluating {split}", total=None):
                found[split] = evaluate_engine(opened, text.split(split)).perplexity
        return found
