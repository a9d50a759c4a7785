"""Quantization-aware training (section 4.3) as a plug-in of the one training loop.

The forward pass rounds weights and activations, gradients go straight through, and the optimizer
moves the floats behind the integers. After each step the weights' ranges are computed again and
those of activations follow a moving average; learned scales are parameters of the optimizer.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from micronet_lm.compression.gradual_pruning import apply_masks
from micronet_lm.compression.magnitude import prunable
from micronet_lm.compression.quantization.ranges import RangeTracker
from micronet_lm.config import QuantizeConfig
from micronet_lm.errors import ConfigError
from micronet_lm.model import LanguageModel
from micronet_lm.model.quantizers import Quantizers
from micronet_lm.training.plugins import Batch, Plugin
from micronet_lm.training.processes import Processes


class QuantizationAware(Plugin):
    """Plug-in that updates scales, and keeps pruned zeros and the cache's parameters."""

    name = "quantization"
    handles = frozenset({"quantize"})

    def __init__(self, config: QuantizeConfig) -> None:
        self._config = config

    def prepare(self, model: LanguageModel, processes: Processes) -> None:
        """Record the pruned weights; freeze θ and λ, which were searched; watch activations."""
        if model.quantizers is None:
            raise ConfigError("the model has no quantizers: quantize and calibrate it first")
        self._processes = processes
        self._quantizers: Quantizers = model.quantizers
        pruned = {**prunable(model), **prunable(model, "all")}
        self._masks = {
            name: tensor.detach() != 0
            for name, tensor in pruned.items()
            if bool((tensor == 0).any())
        }
        if model.cache is not None:
            model.cache.requires_grad_(False)
        self._tracker = RangeTracker(self._quantizers.of_activations())
        if not self._config.learned:
            self._tracker.begin(training_only=True)

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        """Keep pruned weights at zero, then update the scales from the ranges."""
        apply_masks(model, self._masks)
        if self._config.learned:
            return
        with torch.no_grad():
            for name, quantizer in self._quantizers.of_weights().items():
                quantizer.follow(model.get_parameter(name))
        if self._quantizers.of_activations():
            everybody = self._processes.gather(self._tracker.take().unsqueeze(0))
            self._tracker.follow(everybody.amax(dim=0), 1 - self._config.decay)

    def tensors(self) -> dict[str, Tensor]:
        """Return the masks; ranges and scales are the model's."""
        return {name: mask.to(torch.uint8) for name, mask in self._masks.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the masks."""
        device = self._processes.device
        self._masks = {name: mask.to(device, torch.bool) for name, mask in tensors.items()}
