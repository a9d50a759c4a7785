"""The tiny recipe on the tiny corpus."""

import pytest
from tests.support.recipes import tiny_recipe

from micronet_lm.config import Recipe
from micronet_lm.corpus import Corpus


@pytest.fixture
def recipe(corpus: Corpus) -> Recipe:
    return tiny_recipe(corpus)
