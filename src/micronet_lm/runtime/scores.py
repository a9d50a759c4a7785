"""How likely texts are: log-probabilities of their tokens, and the share of unknown words."""

import math
import warnings
from collections.abc import Iterable
from typing import NamedTuple

from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.evaluation import perplexity

MANY_UNKNOWN = 0.2
"""The share of unknown words above which a perplexity says little about a text."""


class UnknownWordsWarning(UserWarning):
    """Much of a text is not in the model's vocabulary."""


class Scored(NamedTuple):
    """A token of a text, as the model knows it, and its natural log-probability."""

    word: str
    log_probability: float


class Scores(list[Scored]):
    """The scored tokens of a text, with what they amount to."""

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return len(self)

    @property
    def log_probability(self) -> float:
        """The sum over all tokens."""
        return math.fsum(score for _, score in self)

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-probability."""  # noqa: D403
        return perplexity(-self.log_probability / len(self))

    @property
    def unknown(self) -> int:
        """The number of tokens that are `<unk>`."""
        return sum(word == UNK for word, _ in self)

    @property
    def unknown_share(self) -> float:
        """The share of tokens that are `<unk>`."""
        return self.unknown / len(self)


class Perplexity(float):
    """A perplexity that knows how many of its tokens were unknown words."""

    tokens: int
    unknown: int

    def __new__(cls, value: float, tokens: int, unknown: int) -> "Perplexity":
        """Make one of a number."""
        self = super().__new__(cls, value)
        self.tokens, self.unknown = tokens, unknown
        return self

    @property
    def unknown_share(self) -> float:
        """The share of tokens that are `<unk>`."""
        return self.unknown / self.tokens


class LineScore(NamedTuple):
    """The score of one line."""

    text: str
    log_probability: float
    """The sum over its tokens, the line's end included."""
    perplexity: float
    tokens: int
    unknown: int
    """The number of tokens that are `<unk>`."""

    @property
    def unknown_share(self) -> float:
        """The share of tokens that are `<unk>`."""
        return self.unknown / self.tokens


def warn_of_unknown(unknown: int, tokens: int) -> None:
    """Warn where much of a text is unknown: its perplexity is low for the wrong reason."""
    if unknown > MANY_UNKNOWN * tokens:
        warnings.warn(
            f"{unknown:,} of {tokens:,} tokens ({unknown / tokens:.0%}) are not in the model's "
            "vocabulary; they all count as one word, <unk>, which is easy to guess, so the "
            "perplexity is too low: compare only texts with similar shares of unknown words",
            UnknownWordsWarning,
            stacklevel=3,
        )


def totals(texts: "Iterable[Scores]") -> tuple[int, int]:
    """Return the unknown tokens and all tokens of several texts."""
    counts = [(scores.unknown, len(scores)) for scores in texts]
    return sum(unknown for unknown, _ in counts), sum(tokens for _, tokens in counts)
