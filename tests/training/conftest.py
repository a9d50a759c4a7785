"""A corpus and a recipe small enough to train in a second."""

import numpy as np
import pytest

from micronet_lm.config import Recipe, load_recipe
from micronet_lm.corpus import Corpus, build_corpus

TINY = {
    "model.cutoffs": [20, 60],
    "model.embedding_widths": [16, 8, 4],
    "model.width": 16,
    "model.layers": 2,
    "model.heads": 2,
    "model.key_width": 8,
    "model.value_width": 8,
    "model.ffn_width": 32,
    "model.context": 9,
    "model.dropout": 0.0,
    "train.steps": 12,
    "train.batch": 4,
    "train.window": 24,
    "train.warmup": 2,
    "train.learning_rate": 0.01,
    "train.precision": "float32",  # the same on every processor, up to the order of sums
    "train.evaluate_every": 4,
    "train.save_every": 3,
    "train.log_every": 2,
}


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Two hundred made-up words whose order has something to learn."""
    folder = tmp_path_factory.mktemp("corpus")
    random = np.random.default_rng(0)
    lines = []
    for _ in range(600):
        first = random.integers(40)
        lines.append(" ".join(f"w{(first * k * k) % 199}" for k in range(1, 9)))
    text = folder / "text.txt"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return build_corpus(
        str(text), folder / "built", tokenizer="wikitext", min_count=1, split=(0.8, 0.1, 0.1)
    )


@pytest.fixture
def recipe(corpus: Corpus) -> Recipe:
    return tiny_recipe(corpus)


def tiny_recipe(corpus: Corpus, **overrides: object) -> Recipe:
    """The tiny recipe, with keys such as `train__steps=3` changed."""
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return load_recipe("demo", {**TINY, "model.vocabulary": len(corpus.vocabulary), **dotted})


def overrides_as_words() -> list[str]:
    """The tiny recipe as words of a command line."""
    words = []
    for key, value in TINY.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words += [f"--{key}", text]
    return words
