"""torch models with random weights."""

import numpy as np
import torch
from numpy.typing import NDArray
from tests.support.recipes import tiny_recipe
from tests.support.shapes import TWO_BINS, changed

from micronet_lm.compression.magnitude import prunable
from micronet_lm.config import CacheConfig
from micronet_lm.corpus import Corpus
from micronet_lm.model import LanguageModel


def draw_weights(model: LanguageModel, std: float) -> LanguageModel:
    """Draw all weights but the cache's: large ones, so that every word makes a difference."""
    for parameter in model.parameters():
        if parameter.ndim:
            torch.nn.init.normal_(parameter, std=std)
    return model


def make_teacher(corpus: Corpus, cache: int = 0) -> LanguageModel:
    """Make a model of the tiny recipe that depends on every token it can reach."""
    torch.manual_seed(0)
    config = CacheConfig(size=cache, theta=0.2, lam=0.3) if cache else None
    return draw_weights(LanguageModel(tiny_recipe(corpus).model, config), std=0.4)


def analysed_model() -> LanguageModel:
    """Make the model of the sensitivity tests, the same in every process."""
    torch.manual_seed(0)
    model = LanguageModel(changed(TWO_BINS, layers=1), CacheConfig(size=10))
    for matrix in prunable(model).values():
        torch.nn.init.normal_(matrix, std=0.4)
    return model


def analysed_text() -> NDArray[np.uint16]:
    return np.random.default_rng(0).integers(60, size=300).astype(np.uint16)
