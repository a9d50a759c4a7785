"""A small trained run and its packed file, for tests that only read them."""

from pathlib import Path

import pytest
from tests.support.corpora import story_corpus
from tests.support.recipes import BRIEF, as_words
from tests.support.verbs import train_demo

from micronet_lm.cli.main import main
from micronet_lm.corpus import Corpus

TINY = as_words({**BRIEF, "cache.size": 30})


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return story_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_demo(tmp_path_factory.mktemp("runs") / "tiny", corpus, TINY)


@pytest.fixture(scope="session")
def model(run: Path) -> Path:
    out = run.parent / "model.safetensors"
    assert main(["pack", str(run), "-o", str(out)]) == 0
    return out
