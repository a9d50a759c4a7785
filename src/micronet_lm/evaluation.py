"""How well a model predicts a text, in numbers: the same for all that can evaluate."""

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class BinLoss:
    """The part of a loss that falls to the words of one bin."""

    first: int
    """The bin's first word."""

    tokens: int
    """Predicted tokens that lie in the bin."""

    loss: float | None
    """Their mean loss in nats; nothing when there are none."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How well a model predicts a text."""

    loss: float
    """Mean negative log-probability a predicted token, in nats."""

    perplexity: float
    """exp(loss)."""

    bits_per_token: float
    """The loss in bits."""

    tokens: int
    """Predicted tokens: all of the text but the first."""

    seconds: float
    """Wall-clock time."""

    bins: tuple[BinLoss, ...]
    """The loss by bin of the vocabulary."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        return asdict(self)


def perplexity(loss: float) -> float:
    """Return exp(loss), but no more than the largest number there is: JSON knows no infinity."""
    return math.exp(min(loss, 709.0))
