"""The quantizers of a model: a scale for every row, tensor or place.

The model's parameters stay floats, which the optimizer moves. Wherever one is used, its quantizer
rounds it to integer · scale, in evaluation as in training.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from micronet_lm.config import Place
from micronet_lm.model.rounding import (
    fake_quantize,
    integers,
    largest,
    moved_scales,
    quantize_backward,
    quantized,
    scale_for,
)

Watch = Callable[[int, Tensor], None]
"""Function called with a quantizer's number within its place, and its input."""


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """The quantized tensors and places, with their bits."""

    weights: Mapping[str, tuple[int, int]]
    """By parameter: bits, and the number of scales (1, or the size of its first dimension)."""

    places: frozenset[Place]
    """Places whose activations are quantized."""

    activation_bits: int
    """Bits of quantized activations."""

    learned_rate: float | None = None
    """Learning rate of a scale's logarithm as a multiple of a weight's; None: not learned."""


class WeightQuantizer(nn.Module):
    """Quantizer of one parameter."""

    scales: Tensor
    moves: nn.Parameter | None

    def __init__(self, bits: int, scales: int, learned_rate: float | None) -> None:
        super().__init__()
        self.bits, self._rate = bits, learned_rate
        self.register_buffer("scales", torch.zeros(scales))
        self.moves = None if learned_rate is None else nn.Parameter(torch.zeros(scales))

    def current_scales(self) -> Tensor:
        """Return the current scales, (1) or (rows)."""
        return _in_force(self.scales, self.moves, self._rate, self.bits)

    def follow(self, weight: Tensor) -> None:
        """Set the scales so that each range reaches its largest magnitude."""
        self.scales.copy_(scale_for(self.magnitudes(weight), self.bits))

    def magnitudes(self, weight: Tensor) -> Tensor:
        """Return the largest magnitude of each range, (1) or (rows)."""
        return weight.detach().abs().reshape(len(self.scales), -1).amax(dim=1)

    def integers(self, weight: Tensor) -> Tensor:
        """Return the integers of a weight, as floats."""
        return integers(weight.detach(), self._spread(self.current_scales(), weight), self.bits)

    def forward(self, weight: Tensor) -> Tensor:
        """Return integers times scales."""
        return fake_quantize(weight, self._spread(self.current_scales(), weight), self.bits)

    def _spread(self, scales: Tensor, weight: Tensor) -> Tensor:
        """Return scales in a shape that multiplies the weight's rows."""
        return scales.view(-1, *[1] * (weight.ndim - 1))


class ActivationQuantizers(nn.Module):
    """Quantizers of one place: a scale for each layer or projection."""

    scales: Tensor
    ranges: Tensor
    moves: nn.Parameter | None

    def __init__(self, count: int, bits: int, learned_rate: float | None) -> None:
        super().__init__()
        self.bits, self._rate = bits, learned_rate
        self.register_buffer("ranges", torch.zeros(count))
        self.register_buffer("scales", torch.zeros(count))
        self.moves = None if learned_rate is None else nn.Parameter(torch.zeros(count))
        self.acts = True
        self.watch: Watch | None = None

    def current_scales(self) -> Tensor:
        """Return the current scales, (count)."""
        return _in_force(self.scales, self.moves, self._rate, self.bits)

    def current_ranges(self) -> Tensor:
        """Return the ranges or, for learned scales, the values of the largest integers."""
        return self.ranges if self.moves is None else self.current_scales() * largest(self.bits)

    def set_ranges(self, ranges: Tensor) -> None:
        """Set the ranges and with them the scales."""
        self.ranges.copy_(ranges)
        self.scales.copy_(scale_for(ranges, self.bits))

    def forward(self, x: Tensor, number: int) -> Tensor:
        """Round the input of one of the place's quantizers."""
        if self.watch is not None:
            self.watch(number, x.detach())
        return fake_quantize(x, self.current_scales()[number], self.bits) if self.acts else x


class AttentionRounding:
    """Rounding of attention's probabilities, with an explicit gradient."""

    def __init__(self, quantizers: ActivationQuantizers | None, number: int) -> None:
        self._quantizers, self._number = quantizers, number
        acts = quantizers is not None and quantizers.acts
        self.scale = quantizers.current_scales()[number] if quantizers and acts else None

    def forward(self, probabilities: Tensor) -> Tensor:
        """Round to fp32 and, where the place is quantized, to integer · scale."""
        single = probabilities.float()
        if self._quantizers is None:
            return single
        if self._quantizers.watch is not None:
            self._quantizers.watch(self._number, single)
        if self.scale is None:
            return single
        return quantized(single, self.scale.detach(), self._quantizers.bits)

    def backward(self, probabilities: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the gradients with respect to the probabilities and the scale."""
        if self.scale is None or self._quantizers is None:
            return gradient, None
        return quantize_backward(
            probabilities.float(),
            self.scale.detach(),
            self._quantizers.bits,
            gradient,
            learned=self.scale.requires_grad,
        )


class Quantizers(nn.Module):
    """All quantizers of a model."""

    def __init__(self, scheme: Scheme, counts: Mapping[Place, int]) -> None:
        """Create the quantizers of a scheme; `counts` is their number per place."""
        super().__init__()
        self.scheme = scheme
        rate = scheme.learned_rate
        self.weights = nn.ModuleDict(
            {_key(name): WeightQuantizer(*width, rate) for name, width in scheme.weights.items()}
        )
        self.activations = nn.ModuleDict(
            {
                place.value: ActivationQuantizers(counts[place], scheme.activation_bits, rate)
                for place in Place
                if place in scheme.places and counts[place]
            }
        )

    def of_weights(self) -> dict[str, WeightQuantizer]:
        """Return weight quantizers by the names of their parameters."""
        names = self.scheme.weights
        return {name: self.weights[_key(name)] for name in names}  # type: ignore[misc]

    def of_activations(self) -> dict[Place, ActivationQuantizers]:
        """Return activation quantizers by place."""
        return {Place(name): module for name, module in self.activations.items()}  # type: ignore[misc]


def _in_force(scales: Tensor, moves: Tensor | None, rate: float | None, bits: int) -> Tensor:
    return scales if moves is None or rate is None else moved_scales(scales, moves, rate, bits)


def _key(name: str) -> str:
    """Return a parameter's name without dots, as a module's name needs."""
    return name.replace(".", "/")
