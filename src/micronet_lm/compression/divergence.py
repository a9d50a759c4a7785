"""The mean KL divergence per token between the predictions of two models."""

import numpy as np
import torch
from numpy.typing import NDArray

from micronet_lm.model import LanguageModel, Memory
from micronet_lm.model.sizes import sizes_for
from micronet_lm.training import hidden_states


@torch.inference_mode()
def mean_divergence(
    reference: LanguageModel, other: LanguageModel, ids: NDArray[np.unsignedinteger]
) -> float:
    """Return the mean over a text of Σ P log(P / Q) over all words, in nats; P is the reference.

    Both predict every token after the first, their caches included.
    """
    total, tokens = 0.0, 0
    memories: list[Memory | None] = [None, None]
    models = (reference, other)
    for (hidden, words), (hidden_too, _) in zip(
        hidden_states(reference, ids), hidden_states(other, ids), strict=True
    ):
        rows = sizes_for(words.device).compared_rows
        for low in range(0, len(words), rows):
            part, logs = slice(low, low + rows), []
            following = words[part].unsqueeze(0)
            for number, states in enumerate((hidden, hidden_too)):
                own = states[part].unsqueeze(0)
                model, memory = models[number], memories[number]
                logs.append(model.log_distribution(own, following, memory)[0])  # (N, V)
                memories[number] = model.remember(memory, own, following)
            p, q = logs
            # 0 · log 0 is 0: words with P = 0 do not count.
            terms = torch.where(p == -torch.inf, 0.0, p.exp() * (p - q))
            total += float(terms.sum(dtype=torch.float64))
        tokens += len(words)
    return total / tokens
