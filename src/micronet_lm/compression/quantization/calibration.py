"""The first scales of a quantized model, from its weights and from its activations on text.

A weight's range is its largest magnitude. An activation's is the moving average of the largest
magnitudes in pieces of the training split. Scales that will be learned begin instead at the
fraction of that range at which rounding and clipping together have the least squared error: at few
bits a smaller range is better, and training would need long to find it.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from micronet_lm.compression.quantization.ranges import RangeTracker
from micronet_lm.config import Place, QuantizeConfig
from micronet_lm.model import LanguageModel
from micronet_lm.model.quantizers import ActivationQuantizers, Quantizers, WeightQuantizer
from micronet_lm.model.rounding import quantized, scale_for
from micronet_lm.training.evaluation import hidden_states

PIECE = 1024
"""Tokens per entry of the moving average, which is their largest magnitude."""

FITTED_TOKENS = 4096
"""Tokens on which the squared error is measured."""

FRACTIONS = tuple(0.02 ** (i / 39) for i in range(40))
"""Ranges tried for learned scales, as fractions of the largest magnitude."""


def calibrate(
    model: LanguageModel,
    ids: NDArray[np.unsignedinteger],
    config: QuantizeConfig,
    *,
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """Set all scales of a quantized model; `ids` are the training split."""
    quantizers = model.quantizers
    assert quantizers is not None  # noqa: S101
    for name, quantizer in quantizers.of_weights().items():
        weight = model.get_parameter(name).detach()
        quantizer.follow(weight)
        if config.learned:
            _fit_weight(quantizer, weight)
    places = quantizers.of_activations()
    if not places:
        return
    text = ids[: config.calibration_tokens + 1]
    tracker = RangeTracker(places)
    tracker.begin()
    try:
        for number, tokens in enumerate(_walk(model, quantizers, text), start=1):
            tracker.follow(tracker.take(), max(1 - config.decay, 1 / number))
            advance(tokens)
    finally:
        tracker.end()
    if config.learned:
        _fit_activations(model, quantizers, text[: FITTED_TOKENS + 1])


def _walk(
    model: LanguageModel, quantizers: Quantizers, ids: NDArray[np.unsignedinteger]
) -> Iterator[int]:
    """Read a text without quantizing activations; yield the tokens of each piece."""
    places = quantizers.of_activations()
    for place in places.values():
        place.acts = False
    try:
        for hidden, words in hidden_states(model, ids, chunk=PIECE):
            if Place.PROJECTED in places:
                with torch.inference_mode():
                    model.softmax.log_probability(hidden, words, model.tables)
            yield len(words)
    finally:
        for place in places.values():
            place.acts = True


@torch.no_grad()
def _fit_weight(quantizer: WeightQuantizer, weight: Tensor) -> None:
    """Set, for each scale of a weight, the range of the least squared error."""
    rows = weight.reshape(len(quantizer.scales), -1)
    ranges = quantizer.magnitudes(weight)
    errors = torch.stack(
        [
            (
                quantized(rows, scale_for(ranges * f, quantizer.bits).unsqueeze(1), quantizer.bits)
                - rows
            )
            .double()
            .square()
            .sum(dim=1)
            for f in FRACTIONS
        ]
    )  # (fractions, scales)
    best = torch.tensor(FRACTIONS, device=errors.device)[errors.argmin(dim=0)]
    quantizer.scales.copy_(scale_for(ranges * best, quantizer.bits))


def _fit_activations(
    model: LanguageModel, quantizers: Quantizers, ids: NDArray[np.unsignedinteger]
) -> None:
    """Set, for each quantizer of a place, the range of the least squared error."""
    places = quantizers.of_activations()
    errors = {
        place: q.ranges.new_zeros(len(FRACTIONS), len(q.ranges)) for place, q in places.items()
    }
    for place, own in places.items():
        own.watch = _measure(own, errors[place])
    try:
        for _ in _walk(model, quantizers, ids):
            pass
    finally:
        for own in places.values():
            own.watch = None
    for place, own in places.items():
        best = torch.tensor(FRACTIONS, device=own.ranges.device)[errors[place].argmin(dim=0)]
        own.set_ranges(own.ranges * best)


def _measure(own: ActivationQuantizers, errors: Tensor) -> Callable[[int, Tensor], None]:
    def watch(number: int, x: Tensor) -> None:
        for row, fraction in enumerate(FRACTIONS):
            scale = scale_for(own.ranges[number] * fraction, own.bits)
            errors[row, number] += (quantized(x, scale, own.bits) - x).square().sum()

    return watch
