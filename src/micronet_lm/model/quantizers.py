"""What a quantized model holds beside its weights: a scale for every row, tensor or place.

The model's parameters stay floats, in training those that the optimizer moves. Whoever uses one
gets it rounded to integer · scale by its quantizer, in evaluation as in training.
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
"""Is shown a quantizer's number within its place, and what comes in there."""


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """What is quantized, and how finely."""

    weights: Mapping[str, tuple[int, int]]
    """By parameter: bits, and the number of scales (1, or the size of its first dimension)."""

    places: frozenset[Place]
    """Which activations."""

    activation_bits: int
    """Their bits."""

    learned_rate: float | None = None
    """How much faster than a weight a scale's logarithm is learned; nothing: scales are set."""


class WeightQuantizer(nn.Module):
    """Rounds one parameter."""

    scales: Tensor
    moves: nn.Parameter | None

    def __init__(self, bits: int, scales: int, learned_rate: float | None) -> None:
        super().__init__()
        self.bits, self._rate = bits, learned_rate
        self.register_buffer("scales", torch.zeros(scales))
        self.moves = None if learned_rate is None else nn.Parameter(torch.zeros(scales))

    def current_scales(self) -> Tensor:
        """The scales in force, (1) or (rows)."""
        return _in_force(self.scales, self.moves, self._rate, self.bits)

    def follow(self, weight: Tensor) -> None:
        """Set the scales so that the largest magnitude of each range is reached."""
        self.scales.copy_(scale_for(self.magnitudes(weight), self.bits))

    def magnitudes(self, weight: Tensor) -> Tensor:
        """The largest magnitude of each range, (1) or (rows)."""
        return weight.detach().abs().reshape(len(self.scales), -1).amax(dim=1)

    def integers(self, weight: Tensor) -> Tensor:
        """The integers of a weight, as floats."""
        return integers(weight.detach(), self._spread(self.current_scales(), weight), self.bits)

    def forward(self, weight: Tensor) -> Tensor:
        """Return integers times scales."""
        return fake_quantize(weight, self._spread(self.current_scales(), weight), self.bits)

    def _spread(self, scales: Tensor, weight: Tensor) -> Tensor:
        """Give scales the shape in which they meet the weight's rows."""
        return scales.view(-1, *[1] * (weight.ndim - 1))


class ActivationQuantizers(nn.Module):
    """Rounds the activations of one place: a scale for each layer or projection."""

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
        """The scales in force, (count)."""
        return _in_force(self.scales, self.moves, self._rate, self.bits)

    def current_ranges(self) -> Tensor:
        """What they reach, or, where scales are learned, what their largest integers stand for."""
        return self.ranges if self.moves is None else self.current_scales() * largest(self.bits)

    def set_ranges(self, ranges: Tensor) -> None:
        """Set the ranges and with them the scales."""
        self.ranges.copy_(ranges)
        self.scales.copy_(scale_for(ranges, self.bits))

    def forward(self, x: Tensor, number: int) -> Tensor:
        """Round what comes into one of the place's quantizers."""
        if self.watch is not None:
            self.watch(number, x.detach())
        return fake_quantize(x, self.current_scales()[number], self.bits) if self.acts else x


class AttentionRounding:
    """The rounding of attention's probabilities, for use within its written-out gradient."""

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
        """Gradients with respect to the probabilities and the scale."""
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
        """`counts` tells how many quantizers each place has."""
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
        """Weight quantizers by the names of their parameters."""
        names = self.scheme.weights
        return {name: self.weights[_key(name)] for name in names}  # type: ignore[misc]

    def of_activations(self) -> dict[Place, ActivationQuantizers]:
        """Activation quantizers by place."""
        return {Place(name): module for name, module in self.activations.items()}  # type: ignore[misc]


def _in_force(scales: Tensor, moves: Tensor | None, rate: float | None, bits: int) -> Tensor:
    return scales if moves is None or rate is None else moved_scales(scales, moves, rate, bits)


def _key(name: str) -> str:
    """A parameter's name as that of a module, which may hold no dots."""
    return name.replace(".", "/")
