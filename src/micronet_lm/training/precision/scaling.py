"""The scale of the loss in fp16, whose smallest gradients would otherwise round to zero.

The loss is multiplied by a power of two before the backward pass, and the gradients are divided by
it afterwards. A scale that is too large makes a gradient infinite: then the step is left out, and
the scale is halved. After many good steps in a row it is doubled. Other precisions need no scale.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from micronet_lm.training.precision.products import Products

FIRST = 2.0**16
"""Scale of the first step."""

SMALLEST = 1.0
"""Scale below which an infinite gradient is the model's own."""

GOOD_STEPS = 2000
"""Number of good steps in a row after which the scale is doubled."""


class LossScaler:
    """The scale and its history, which a checkpoint keeps."""

    def __init__(self, products: Products) -> None:
        self.active = products.precision == "float16"
        self._scale = FIRST if self.active else 1.0
        self._good, self._skipped = 0, 0

    def scaled(self, loss: Tensor) -> Tensor:
        """Return a loss to differentiate."""
        return loss * self._scale if self.active else loss

    def unscale(self, gradients: Sequence[Tensor]) -> None:
        """Divide gradients by the scale, in place."""
        if self.active:
            torch._foreach_mul_(list(gradients), 1 / self._scale)

    def keep(self) -> None:
        """Count a step with finite gradients."""
        self._good += 1
        if self.active and self._good >= GOOD_STEPS:
            self._scale, self._good = 2 * self._scale, 0

    def skip(self) -> bool:
        """Halve the scale after an infinite gradient; return False if that cannot help."""
        if not self.active or self._scale <= SMALLEST:
            return False
        self._scale, self._good, self._skipped = self._scale / 2, 0, self._skipped + 1
        return True

    def numbers(self) -> dict[str, float]:
        """Return the scale and the number of steps left out, for the metrics."""
        if not self.active:
            return {}
        return {"loss_scale": self._scale, "skipped_steps": float(self._skipped)}

    def tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint needs to resume bit-exactly."""
        if not self.active:
            return {}
        values = [self._scale, float(self._good), float(self._skipped)]
        return {"state": torch.tensor(values, dtype=torch.float64)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the tensors that `tensors` returned."""
        if self.active and "state" in tensors:
            scale, good, skipped = tensors["state"].tolist()
            self._scale, self._good, self._skipped = scale, int(good), int(skipped)
