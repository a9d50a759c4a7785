"""What is remembered of earlier texts, for sessions to recall (docs/personal.md)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from micronet_lm.errors import InferenceError

RAMP = 200
"""States, or counted words, from which a share is whole."""
LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recollections:
    """Hidden states with the words that followed them, and new words with their counts.

    The prediction becomes (1 − a − b) P + a P_states + b P_words: P_states is what a cache of these
    states predicts, P_words is in proportion to the counts.
    """

    states: NDArray[np.float16]
    """(M, D) hidden states, at most as many as the model's cache holds."""
    following: NDArray[np.int32]
    """(M) the word after each of them: an id of the vocabulary, or V + n for word n of `words`."""
    words: tuple[str, ...]
    """(W) words outside the vocabulary."""
    counts: tuple[int, ...]
    """(W) how often each of them was read."""
    state_share: float
    """The share of the states once there are `RAMP` of them."""
    word_share: float
    """The share of the counts once they sum to `RAMP`."""

    def shares(self) -> tuple[float, float]:
        """Return a and b: with little to remember they are smaller."""
        held, counted = len(self.following), sum(self.counts)
        return (
            self.state_share * min(1.0, held / RAMP),
            self.word_share * min(1.0, counted / RAMP),
        )

    def check(self, *, cache: int, vocabulary: int, width: int) -> None:
        """Refuse what a model cannot recall."""
        held = len(self.following)
        if not cache:
            raise InferenceError("the model has no cache, so it cannot recall earlier texts")
        if held > cache:
            raise InferenceError(
                f"a model with a cache of {cache} states recalls at most as many, got {held}"
            )
        if self.states.shape != (held, width) or len(self.words) != len(self.counts):
            raise InferenceError(
                "each recalled state needs the word that followed it, and each word its count"
            )
        a, b = self.state_share, self.word_share
        if not (a >= 0 and b >= 0 and a + b < 1):
            raise InferenceError(
                f"the shares must be at least 0 and together less than 1, got {a:g} and {b:g}"
            )
        if held and not 0 <= self.following.min() <= self.following.max() < vocabulary + len(
            self.words
        ):
            raise InferenceError("a recalled word is outside the vocabulary and the words")
        if not np.isfinite(self.states).all():
            raise InferenceError("a recalled state is not finite")


def halves(states: NDArray[np.float32]) -> NDArray[np.float16]:
    """Return states in half precision; beyond its range the largest number."""
    return np.clip(states, -LARGEST, LARGEST).astype(np.float16)
