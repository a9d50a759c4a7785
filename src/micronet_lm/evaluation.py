"""The result of an evaluation, the same for the torch model and all engines."""

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class BinLoss:
    """The loss of the words of one bin."""

    first: int
    """The bin's first word."""

    tokens: int
    """Number of predicted tokens in the bin."""

    loss: float | None
    """Mean loss of these tokens in nats; None if there are none."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Loss and perplexity of a model on a text."""

    loss: float
    """Mean negative log-probability per predicted token, in nats."""

    perplexity: float
    """exp(loss)."""

    bits_per_token: float
    """The loss in bits."""

    tokens: int
    """Number of predicted tokens: all of the text but the first."""

    seconds: float
    """Wall-clock time in seconds."""

    bins: tuple[BinLoss, ...]
    """The loss by bin of the vocabulary."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return asdict(self)


def perplexity(loss: float) -> float:
    """Return exp(loss), at most the largest finite number: JSON has no infinity."""
    return math.exp(min(loss, 709.0))
