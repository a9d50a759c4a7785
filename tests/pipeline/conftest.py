"""A whole recipe so small that all of its stages take two seconds."""

import random
from pathlib import Path

import pytest

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
    """Write the text, the teacher's recipe and the whole recipe; give the latter's place."""
    random_ = random.Random(0)  # noqa: S311
    starts = [random_.randrange(1, 40) for _ in range(500)]
    lines = [" ".join(f"w{(start * k * k) % 199}" for k in range(1, 9)) for start in starts]
    text, teacher, whole = (folder / name for name in ("text.txt", "teacher.yaml", "whole.yaml"))
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    teacher.write_text(TEACHER.replace("SOURCE", str(text)))
    whole.write_text(WHOLE.replace("TEACHER", str(teacher)))
    return whole


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a recipe with all sections."""
    return write_recipes(tmp_path_factory.mktemp("recipes"))


@pytest.fixture(scope="session")
def finished(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline that ran to its end without any interruption; tests only read it."""
    pytest.importorskip("torch", reason="torch is not installed")
    from micronet_lm.cli.main import main

    out = tmp_path_factory.mktemp("pipelines") / "finished"
    assert main(["run", str(recipe), "--out", str(out), "--json"]) == 0
    return out
