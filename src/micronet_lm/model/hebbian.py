"""The Hebbian softmax (section 3.4; Rae et al. 2018): rows of rare words learn by heart.

After a step of gradient descent, the output row of a word that was just seen moves towards the
mean of the activations that it followed. Early sightings count most: the rate is max(1/c, γ),
where c is 1 at a word's first sighting, and a word that was seen T times moves no more. So the
row of a new word becomes what it was seen with, at once, and gradient descent has the last word.
"""

import torch
from torch import Tensor

from micronet_lm.model.transformer import LanguageModel


@torch.no_grad()
def hebbian_update(
    model: LanguageModel, hidden: Tensor, words: Tensor, seen: Tensor, *, gamma: float, limit: int
) -> int:
    """Move the rows of `words` (N), which followed `hidden` (N, D), and count their sightings.

    `seen` (V) holds how often each word was seen before; it is changed in place. In every bin the
    activations are first projected as the softmax does it, and scaled to the norm of the row, so
    that a row turns rather than grows. The entries of the first bin that stand for other bins
    are no words, and stay. Returns how many rows moved.
    """
    moving = seen[words] < limit
    moved = 0
    softmax, bounds = model.softmax, model.softmax.bounds
    for low, high, table, projection in zip(
        bounds, bounds[1:], model.embedding.tables, softmax.projections, strict=False
    ):
        place = torch.nonzero(moving & (words >= low) & (words < high)).squeeze(1)
        word, number, count = torch.unique(words[place], return_inverse=True, return_counts=True)
        rows = table[word - low]  # (U, E) a copy
        activation = projection(hidden.index_select(0, place).to(rows.dtype))  # (N', E)
        length = activation.norm(dim=1).clamp_min(torch.finfo(rows.dtype).tiny)
        activation *= (rows.norm(dim=1)[number] / length).unsqueeze(1)
        mean = torch.zeros_like(rows).index_add_(0, number, activation) / count.unsqueeze(1)
        rate = (1 / (seen[word] + 1)).clamp_min(gamma).unsqueeze(1).to(rows.dtype)
        table[word - low] = torch.lerp(rows, mean, rate)
        moved += len(word)
    seen.index_add_(0, words, torch.ones_like(words, dtype=seen.dtype))
    return moved
