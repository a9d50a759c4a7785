"""Log-probabilities of a text with words outside the vocabulary, by the torch model.

The id of such a word is V on. The network reads it as `<unk>`, the cache remembers the word itself:
P(word) = P(`<unk>`) · P_spelling(word) + λ · P_cache(word), where P(`<unk>`) has the cache's votes
for `<unk>` in it. The engines compute the same (`runtime/engine.py`, `score_open`).
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from micronet_lm.errors import CorpusError
from micronet_lm.model import LanguageModel, Memory
from micronet_lm.model.sizes import sizes_for
from micronet_lm.training.device import on_device
from micronet_lm.training.evaluation import hidden_states


@torch.inference_mode()
def open_log_probabilities(
    model: LanguageModel,
    ids: NDArray[np.integer],
    spelled: Sequence[float],
    unknown: int,
    *,
    chunk: int | None = None,
) -> NDArray[np.float64]:
    """Return the log-probability of every token after the first: (T − 1).

    `spelled` has log P_spelling of each word outside the vocabulary; `unknown` is `<unk>`'s id.
    """
    size = model.config.bounds[-1]
    if len(ids) and int(ids.max()) >= size + len(spelled):
        raise CorpusError(
            f"word {int(ids.max())} has no spelling: give one for each of the "
            f"{int(ids.max()) - size + 1} words from {size} on"
        )
    device = next(model.parameters()).device
    chunk = chunk or sizes_for(device).chunk
    words = on_device(ids.astype(np.int64), device)
    log_spelled = torch.tensor([*spelled, 0.0], dtype=torch.float64, device=device)
    read = np.where(ids < size, ids, unknown).astype(np.uint32)
    memory: Memory | None = None
    parts: list[Tensor] = []
    for at, (hidden, known) in enumerate(hidden_states(model, read, chunk=chunk)):
        own = words[at * chunk + 1 :][: len(known)]
        new = own >= size
        extra = log_spelled[torch.where(new, own - size, len(spelled))]  # 0 for known words
        softmax = model.softmax.log_probability(hidden, known, model.tables)
        result = softmax.double() + extra
        if model.cache is not None:
            states, following = hidden.unsqueeze(0), own.unsqueeze(0)
            held = 0 if memory is None else memory.words.shape[1]
            asked = torch.stack([following, torch.full_like(following, unknown)], dim=2)
            log_cache = model.cache.recalled(states, asked, following, memory).double()
            votes = torch.where(new, log_cache[..., 1] + extra, -torch.inf)
            votes = torch.logaddexp(log_cache[..., 0], votes)
            result = model.cache.mix(result.unsqueeze(0), votes, held)[0]
            memory = model.remember(memory, states, following)
        parts.append(result)
    return torch.cat(parts).cpu().numpy()
