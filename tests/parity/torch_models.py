"""Torch models with the weights of random packed ones: the same numbers on both sides."""

import numpy as np
import torch

from micronet_lm.artifact import PackedModel
from micronet_lm.config import CacheConfig
from micronet_lm.model import LanguageModel


def torch_model(model: PackedModel) -> LanguageModel:
    """Build the torch model of a packed one, its weights as fp32 values."""
    cache = None
    if model.cache is not None:
        own = model.cache
        cache = CacheConfig(size=own.size, theta=own.theta, lam=own.lam)
    built = LanguageModel(model.shape, cache)
    weights = {name: torch.from_numpy(np.array(w.floats())) for name, w in model.tensors.items()}
    rest = built.load_state_dict(weights, strict=False)
    assert set(rest.missing_keys) <= {
        *("cache.free_theta", "cache.free_lam", "softmax.tail_weight", "softmax.tail_bias")
    }
    assert not rest.unexpected_keys
    return built.eval()
