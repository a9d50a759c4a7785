"""Torch models with the weights of random packed ones: the same numbers on both sides."""

import numpy as np
import torch
from torch import Tensor

from micronet_lm.artifact import PackedModel
from micronet_lm.config import CacheConfig
from micronet_lm.model import LanguageModel
from micronet_lm.model.integers import state_of_stored
from micronet_lm.model.quantizers import Scheme


def torch_model(model: PackedModel) -> LanguageModel:
    """Build the torch model of a packed one, quantized where that is."""
    cache = None
    if model.cache is not None:
        cache = CacheConfig(**vars(model.cache))
    built = LanguageModel(model.shape, cache, scheme(model))
    state = state_of_stored(built, stored(model))
    rest = built.load_state_dict(state, strict=False)
    assert set(rest.missing_keys) <= {
        *("cache.free_theta", "cache.free_lam", "softmax.tail_weight", "softmax.tail_bias")
    }
    assert not rest.unexpected_keys
    return built.eval()


def scheme(model: PackedModel) -> Scheme | None:
    weights = {
        name: (own.bits, own.scales.size)
        for name, own in model.tensors.items()
        if own.scales is not None
    }
    if not weights and not model.activations:
        return None
    return Scheme(
        weights=weights,
        places=frozenset(model.activations),
        activation_bits=model.activation_bits or 32,
    )


def stored(model: PackedModel) -> dict[str, Tensor]:
    """Return a packed model's tensors under the names of a checkpoint."""
    found = {name: torch.from_numpy(np.array(own.values)) for name, own in model.tensors.items()}
    for name, own in model.tensors.items():
        if own.scales is not None:
            found[f"{name}.steps"] = torch.from_numpy(np.array(own.scales))
    for place, rows in model.activations.items():
        found[f"activations.{place}"] = torch.from_numpy(np.array(rows))
    return found
