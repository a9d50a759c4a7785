"""What a quantized model holds beside its weights: a step for every row, tensor or place.

The model's parameters stay floats, in training those that the optimizer moves. Whoever uses one
gets it rounded to integer · step by its quantizer, in evaluation as in training.
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
    moved_steps,
    quantize_backward,
    quantized,
    step_for,
)

Watch = Callable[[int, Tensor], None]
"""Is shown a quantizer's number within its place, and what comes in there."""


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """What is quantized, and how finely."""

    weights: Mapping[str, tuple[int, int]]
    """By parameter: bits, and the number of steps (1, or the size of its first dimension)."""

    places: frozenset[Place]
    """Which activations."""

    activation_bits: int
    """Their bits."""

    learned_rate: float | None = None
    """How much faster than a weight a step's logarithm is learned; nothing: steps are set."""


class WeightQuantizer(nn.Module):
    """Rounds one parameter."""

    steps: Tensor
    moves: nn.Parameter | None

    def __init__(self, bits: int, steps: int, learned_rate: float | None) -> None:
        super().__init__()
        self.bits, self._rate = bits, learned_rate
        self.register_buffer("steps", torch.zeros(steps))
        self.moves = None if learned_rate is None else nn.Parameter(torch.zeros(steps))

    def current_steps(self) -> Tensor:
        """The steps in force, (1) or (rows)."""
        return _in_force(self.steps, self.moves, self._rate, self.bits)

    def follow(self, weight: Tensor) -> None:
        """Set the steps so that the largest magnitude of each range is reached."""
        self.steps.copy_(step_for(self.magnitudes(weight), self.bits))

    def magnitudes(self, weight: Tensor) -> Tensor:
        """The largest magnitude of each range, (1) or (rows)."""
        return weight.detach().abs().reshape(len(self.steps), -1).amax(dim=1)

    def integers(self, weight: Tensor) -> Tensor:
        """The integers of a weight, as floats."""
        return integers(weight.detach(), self._spread(self.current_steps(), weight), self.bits)

    def forward(self, weight: Tensor) -> Tensor:
        """Return integers times steps."""
        return fake_quantize(weight, self._spread(self.current_steps(), weight), self.bits)

    def _spread(self, steps: Tensor, weight: Tensor) -> Tensor:
        """Give steps the shape in which they meet the weight's rows."""
        return steps.view(-1, *[1] * (weight.ndim - 1))


class ActivationQuantizers(nn.Module):
    """Rounds the activations of one place: a step for each layer or projection."""

    steps: Tensor
    ranges: Tensor
    moves: nn.Parameter | None

    def __init__(self, count: int, bits: int, learned_rate: float | None) -> None:
        super().__init__()
        self.bits, self._rate = bits, learned_rate
        self.register_buffer("ranges", torch.zeros(count))
        self.register_buffer("steps", torch.zeros(count))
        self.moves = None if learned_rate is None else nn.Parameter(torch.zeros(count))
        self.acts = True
        self.watch: Watch | None = None

    def current_steps(self) -> Tensor:
        """The steps in force, (count)."""
        return _in_force(self.steps, self.moves, self._rate, self.bits)

    def current_ranges(self) -> Tensor:
        """What they reach, or, where steps are learned, what their largest integers stand for."""
        return self.ranges if self.moves is None else self.current_steps() * largest(self.bits)

    def set_ranges(self, ranges: Tensor) -> None:
        """Set the ranges and with them the steps."""
        self.ranges.copy_(ranges)
        self.steps.copy_(step_for(ranges, self.bits))

    def forward(self, x: Tensor, number: int) -> Tensor:
        """Round what comes into one of the place's quantizers."""
        if self.watch is not None:
            self.watch(number, x.detach())
        return fake_quantize(x, self.current_steps()[number], self.bits) if self.acts else x


class AttentionRounding:
    """The rounding of attention's probabilities, for use within its written-out gradient."""

    def __init__(self, quantizers: ActivationQuantizers | None, number: int) -> None:
        self._quantizers, self._number = quantizers, number
        acts = quantizers is not None and quantizers.acts
        self.step = quantizers.current_steps()[number] if quantizers and acts else None

    def forward(self, probabilities: Tensor) -> Tensor:
        """Round to fp32 and, where the place is quantized, to integer · step."""
        single = probabilities.float()
        if self._quantizers is None:
            return single
        if self._quantizers.watch is not None:
            self._quantizers.watch(self._number, single)
        if self.step is None:
            return single
        return quantized(single, self.step.detach(), self._quantizers.bits)

    def backward(self, probabilities: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        """Gradients with respect to the probabilities and the step."""
        if self.step is None or self._quantizers is None:
            return gradient, None
        return quantize_backward(
            probabilities.float(),
            self.step.detach(),
            self._quantizers.bits,
            gradient,
            learned=self.step.requires_grad,
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


def _in_force(steps: Tensor, moves: Tensor | None, rate: float | None, bits: int) -> Tensor:
    return steps if moves is None or rate is None else moved_steps(steps, moves, rate, bits)


def _key(name: str) -> str:
    """A parameter's name as that of a module, which may hold no dots."""
    return name.replace(".", "/")
