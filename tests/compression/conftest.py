"""A teacher whose expectations depend on its context."""

import pytest
from tests.support.models import make_teacher

from micronet_lm.corpus import Corpus
from micronet_lm.model import LanguageModel


@pytest.fixture
def teacher(corpus: Corpus) -> LanguageModel:
    return make_teacher(corpus)
