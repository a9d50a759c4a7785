"""The Hebbian softmax (section 3.4; Rae et al. 2018): fast updates of rare words' output rows.

After a step of gradient descent, the output row of a word that was just seen moves towards the
mean of the hidden states that it followed. Early occurrences count most: the rate is max(1/c, γ),
where c is 1 at a word's first occurrence, and a word that was seen T times is not updated any
more. So the row of a new word is set at once, and gradient descent refines it later.
"""

import torch
from torch import Tensor

from micronet_lm.model.adaptive import members
from micronet_lm.model.transformer import LanguageModel


@torch.no_grad()
def hebbian_update(
    model: LanguageModel, hidden: Tensor, words: Tensor, seen: Tensor, *, gamma: float, limit: int
) -> int:
    """Move the rows of `words` (N), which followed `hidden` (N, D), and count the words.

    `seen` (V) counts earlier occurrences of each word; it is changed in place. In every bin the
    hidden states are first projected as in the softmax, and scaled to the norm of the row, so that
    a row changes direction rather than length. The first bin's entries for tails are not words
    and stay unchanged. Return the number of rows moved.
    """
    moving = seen[words] < limit
    rates = (seen + 1).reciprocal().clamp_min(gamma)  # of all words at once
    moved = 0
    softmax, bounds = model.softmax, model.softmax.bounds
    for low, inside, table, projection in zip(
        bounds, members(words, bounds), model.embedding.tables, softmax.projections, strict=False
    ):
        place = torch.nonzero(moving & inside).squeeze(1)
        word, number, count = torch.unique(words[place], return_inverse=True, return_counts=True)
        entry = word - low
        rows = table[entry]  # (U, E) a copy
        activation = projection(hidden.index_select(0, place).to(rows.dtype))  # (N', E)
        length = activation.norm(dim=1).clamp_min(torch.finfo(rows.dtype).tiny)
        activation *= (rows.norm(dim=1)[number] / length).unsqueeze(1)
        mean = torch.zeros_like(rows).index_add_(0, number, activation) / count.unsqueeze(1)
        table[entry] = torch.lerp(rows, mean, rates[word].unsqueeze(1).to(rows.dtype))
        moved += len(word)
    seen.index_add_(0, words, torch.ones_like(words, dtype=seen.dtype))
    return moved
