"""The loss of every token of a text."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from micronet_lm.model import LanguageModel
from micronet_lm.training import token_losses


def text_losses(
    model: LanguageModel,
    ids: NDArray[np.unsignedinteger],
    *,
    advance: Callable[[int], None] = lambda _: None,
) -> NDArray[np.float32]:
    """Return the negative log-probability of each token after the first."""
    parts = []
    for losses, words in token_losses(model, ids):
        parts.append(losses.numpy())
        advance(len(words))
    return np.concatenate(parts)
