"""Recipes small enough to train in a second, as recipes, words of a command line and files."""

import random
from collections.abc import Mapping
from pathlib import Path

from tests.support.corpora import write_lines

from micronet_lm.config import Recipe, load_recipe
from micronet_lm.corpus import Corpus

TINY: dict[str, object] = {
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
"""What changes preset `demo` to a model that learns something within a dozen steps."""

BRIEF: dict[str, object] = {
    "model.cutoffs": [20, 60],
    "model.embedding_widths": [16, 8, 4],
    "model.width": 16,
    "model.layers": 1,
    "model.context": 9,
    "train.steps": 4,
    "train.batch": 2,
    "train.window": 24,
    "train.warmup": 1,
    "train.evaluate_every": 2,
}
"""What changes preset `demo` to one layer and four steps, for tests of verbs."""


def tiny_recipe(corpus: Corpus, **overrides: object) -> Recipe:
    """Return the tiny recipe, with keys such as `train__steps=3` changed."""
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return load_recipe("demo", {**TINY, "model.vocabulary": len(corpus.vocabulary), **dotted})


def as_words(overrides: Mapping[str, object]) -> list[str]:
    """Return overrides as words of a command line: `--train.steps 3`."""
    words = []
    for key, value in overrides.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words += [f"--{key}", text]
    return words


TEACHER = """
base: demo
corpus: {source: SOURCE, min_count: 1}
model:
  cutoffs: [30, 90]
  embedding_widths: [16, 8, 4]
  width: 16
  layers: 2
  heads: 2
  key_width: 8
  value_width: 8
  ffn_width: 48
  context: 9
  dropout: 0.1
train:
  steps: 12
  batch: 4
  window: 24
  warmup: 2
  learning_rate: 0.01
  evaluate_every: 6
  save_every: 3
  log_every: 2
"""

WHOLE = """
base: TEACHER
model: {ffn_width: 24, dropout: 0.0}
cache: {size: 40}
hebbian: {limit: 50}
distill: {teacher: TEACHER, top_k: 6}
prune:
  sparsity: 0.4
  every: 2
  steps: 6
  analysed_tokens: 300
  train: {steps: 8, learning_rate: 0.005, warmup: 1, evaluate_every: 4, save_every: 3}
search: {cache_size: 60}
quantize: {bits: 6, steps: 2, calibration_tokens: 200}
"""


def write_recipes(folder: Path) -> Path:
    """Write a text, the teacher's recipe and one with all sections; return the latter's path.

    All stages of it together take two seconds.
    """
    random_ = random.Random(0)  # noqa: S311
    starts = [random_.randrange(1, 40) for _ in range(500)]
    lines = [" ".join(f"w{(start * k * k) % 199}" for k in range(1, 9)) for start in starts]
    text = write_lines(folder / "text.txt", lines)
    teacher, whole = folder / "teacher.yaml", folder / "whole.yaml"
    teacher.write_text(TEACHER.replace("SOURCE", str(text)))
    whole.write_text(WHOLE.replace("TEACHER", str(teacher)))
    return whole
