"""The tiny corpus of the training tests, and a teacher whose expectations depend on its context."""

import pytest
import torch
from tests.training.conftest import corpus, tiny_recipe

from micronet_lm.config import CacheConfig
from micronet_lm.corpus import Corpus
from micronet_lm.model import LanguageModel

__all__ = ["corpus"]


def make_teacher(corpus: Corpus, cache: int = 0) -> LanguageModel:
    """Random weights, large enough that every token a model can reach makes a difference."""
    torch.manual_seed(0)
    config = CacheConfig(size=cache, theta=0.2, lam=0.3) if cache else None
    model = LanguageModel(tiny_recipe(corpus).model, config)
    for parameter in model.parameters():
        if parameter.ndim:
            torch.nn.init.normal_(parameter, std=0.4)
    return model


@pytest.fixture
def teacher(corpus: Corpus) -> LanguageModel:
    return make_teacher(corpus)
