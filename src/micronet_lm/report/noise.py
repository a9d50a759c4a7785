"""Which changes of perplexity are more than noise, by paired differences over blocks of text.

Two models that read the same text are compared token by token. Losses of neighbouring tokens depend
on each other, so the differences are averaged over blocks, and the blocks' means give a standard
error. A change counts when it is larger than two of them. That is the noise of the text; another
seed of the training may move a perplexity by more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from micronet_lm.corpus import Corpus
from micronet_lm.progress import bar
from micronet_lm.report.losses import text_losses
from micronet_lm.runs import is_run
from micronet_lm.training import Run

TOKENS = 100_000
"""Tokens of the validation split that are compared at most, the first ones."""

BLOCK, BLOCKS = 1000, 20
"""Tokens of a block; a short text has as many blocks as this, smaller ones."""

ERRORS = 2.0
"""Standard errors that a change must exceed."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """The difference of two models' losses on the same text."""

    name: str
    before: str
    """The model that it is compared with."""
    loss: float
    """Mean difference in nats per token; below zero is better."""
    error: float
    """Its standard error."""
    tokens: int
    """Predicted tokens that were compared."""

    @property
    def clear(self) -> bool:
        """Whether it is more than noise."""
        return abs(self.loss) > ERRORS * self.error

    @property
    def verdict(self) -> str:
        """The conclusion, in words."""
        if not self.clear:
            return "within noise"
        return "better" if self.loss < 0 else "worse"


def paired_change(
    name: str, losses: NDArray[np.floating], before: str, others: NDArray[np.floating]
) -> Change:
    """Compare the losses of two models on the same tokens."""
    apart = losses.astype(np.float64) - others
    count = min(max(BLOCKS, len(apart) // BLOCK), len(apart))
    means = np.array([block.mean() for block in np.array_split(apart, count)])
    spread = float(means.std(ddof=1)) if count > 1 else float("inf")
    return Change(
        name=name,
        before=before,
        loss=float(apart.mean()),
        error=spread / count**0.5,
        tokens=len(apart),
    )


def changes(folders: Mapping[str, Path], corpus: Corpus) -> Sequence[Change]:
    """Compare every model with the one before it; folders without a run are left out."""
    ids = corpus.split("valid")[: TOKENS + 1]
    runs = {name: Run.open(folder) for name, folder in folders.items() if is_run(folder)}
    if len(runs) < 2:
        return []
    found: list[Change] = []
    last: tuple[str, NDArray[np.float32]] | None = None
    with bar("Comparing the stages", total=len(runs) * (len(ids) - 1), unit="tokens") as advance:
        for name, run in runs.items():
            losses = text_losses(run.model(), ids, advance=advance)
            if last is not None:
                found.append(paired_change(name, losses, *last))
            last = name, losses
    return found
