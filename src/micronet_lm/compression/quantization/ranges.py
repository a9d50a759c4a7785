"""The ranges of activations: the largest magnitudes at each quantizer."""

from collections.abc import Mapping

import torch
from torch import Tensor

from micronet_lm.config import Place
from micronet_lm.model.quantizers import ActivationQuantizers, Watch

_UNSEEN = -1.0


class RangeTracker:
    """Tracker of the largest magnitudes at the quantizers of a model."""

    def __init__(self, quantizers: Mapping[Place, ActivationQuantizers]) -> None:
        self._quantizers = dict(quantizers)
        self._largest = self._nothing()

    def begin(self, *, training_only: bool = False) -> None:
        """Begin to track, always or only while the model is in training mode."""
        for place, quantizers in self._quantizers.items():
            quantizers.watch = self._watch(place, training_only=training_only)

    def end(self) -> None:
        """Stop tracking."""
        for quantizers in self._quantizers.values():
            quantizers.watch = None

    def take(self) -> Tensor:
        """Return the largest magnitudes since the last call, of all places in one tensor."""
        taken, self._largest = self._largest, self._nothing()
        return torch.cat([taken[place] for place in self._quantizers])

    @torch.no_grad()
    def follow(self, largest: Tensor, rate: float) -> None:
        """Move all ranges by `rate` towards these magnitudes, in the order of `take`.

        A quantizer without input stays unchanged.
        """
        sizes = [len(quantizers.ranges) for quantizers in self._quantizers.values()]
        for quantizers, seen in zip(self._quantizers.values(), largest.split(sizes), strict=True):
            moved = torch.lerp(quantizers.ranges, seen, rate)
            quantizers.set_ranges(torch.where(seen == _UNSEEN, quantizers.ranges, moved))

    def _nothing(self) -> dict[Place, Tensor]:
        return {p: torch.full_like(q.ranges, _UNSEEN) for p, q in self._quantizers.items()}

    def _watch(self, place: Place, *, training_only: bool) -> Watch:
        quantizers = self._quantizers[place]

        def watch(number: int, x: Tensor) -> None:
            if x.numel() and (quantizers.training or not training_only):
                row = self._largest[place]
                row[number] = torch.maximum(row[number], x.abs().amax())

        return watch
