"""A temperature for the softmax, found after training and folded into the weights.

A model that has read a small text many times is too sure of itself. Dividing its logits by a
temperature τ above 1 mends that, and needs no new parameter: blocks begin with a LayerNorm, which
does not see the size of its input, so that everything that is written to the residual stream can
be scaled by s = τ^(−1/2), and with it the last hidden states. Scaled by s as well, the softmax's
side gives logits of s² = 1/τ times the size. The cache's similarities shrink by s² too, which θ
makes good.
"""

import copy
import math
from collections.abc import Iterable
from typing import cast

import torch
from torch import nn

from micronet_lm.compression.cache_search import Surface
from micronet_lm.errors import UsageError
from micronet_lm.model import LanguageModel
from micronet_lm.model.transformer import Block

WIDEST = math.log(2)
"""The search goes from temperatures of 1/2 to 2."""

_GOLDEN = (math.sqrt(5) - 1) / 2


@torch.no_grad()
def fold_temperature(model: LanguageModel, temperature: float) -> None:
    """Divide a model's logits by a temperature, by changing its weights."""
    if temperature == 1:
        return
    if model.quantizers is not None:
        raise UsageError("a temperature is folded in before quantization: search a run of floats")
    scale = temperature**-0.5
    scaled: list[torch.Tensor] = []
    for block in cast("Iterable[Block]", model.blocks):
        scaled += [block.attention.output.weight, *block.outer.parameters()]
    for number, table in enumerate(model.embedding.tables):
        inward, outward = model.embedding.projections[number], model.softmax.projections[number]
        if isinstance(inward, nn.Identity):  # the table itself is read and predicted with
            scaled.append(table)
            if number == 0:
                scaled.append(model.softmax.tail_weight)
        else:
            scaled += [*inward.parameters(), *outward.parameters()]
    for parameter in scaled:
        parameter.mul_(scale)
    for bias in (*model.softmax.biases, model.softmax.tail_bias):
        bias.div_(temperature)
    if model.cache is not None:
        cache = model.cache
        cache.set(theta=cache.theta.item() * temperature, lam=cache.lam.item())


def search_temperature(model: LanguageModel, surface: Surface, *, confirm: bool) -> float:
    """Return the temperature with which the softmax alone predicts a text best.

    With `confirm` it is found on the first half of the text, and is 1 where the second half is
    predicted no better with it.
    """
    first, second = surface.halves() if confirm else (surface, None)

    def loss(part: Surface, log_temperature: float) -> float:
        folded = copy.deepcopy(model)
        fold_temperature(folded, math.exp(log_temperature))
        return part.softmax_loss(folded, math.exp(-0.5 * log_temperature))

    low, high = -WIDEST, WIDEST
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = loss(first, inner), loss(first, outer)
    while high - low > 0.02:
        if at_inner < at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - _GOLDEN * (high - low)
            at_inner = loss(first, inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + _GOLDEN * (high - low)
            at_outer = loss(first, outer)
    found = (low + high) / 2
    if second is not None and loss(second, found) >= loss(second, 0.0):
        return 1.0
    return round(math.exp(found), 4)
