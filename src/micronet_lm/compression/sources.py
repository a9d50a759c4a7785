"""Train further from another run's model: its inputs, its counters, and the call of the loop."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from micronet_lm.compression.distillation import Distillation
from micronet_lm.compression.softlabels import SoftLabels
from micronet_lm.config import Recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import RunError
from micronet_lm.files import file_sha256
from micronet_lm.model import LanguageModel
from micronet_lm.training import Input, Objective, Outcome, Plugin, Run, next_word_loss, train
from micronet_lm.training.run import SEEN


def train_on(
    run: Run,
    recipe: Recipe,
    corpus: Corpus,
    *,
    plugin: Plugin,
    model: LanguageModel | None,
    source: Run | None,
    labels: SoftLabels | None,
    amend: bool = False,
    quiet: bool = False,
) -> Outcome:
    """Train `model`, which was made from `source`, in the one loop with one plug-in.

    A run that resumes needs neither model nor source. With `labels` the recipe's distillation is
    on. The word counters of a Hebbian update continue where the source's ended.
    """
    objective: Objective = next_word_loss
    if recipe.distill is not None and labels is not None:
        objective = Distillation(labels, recipe.distill, recipe.train.steps)
    return train(
        run,
        recipe,
        corpus,
        model=model,
        objective=objective,
        plugins=[plugin],
        inputs=inputs_of(source, labels),
        inherited=hebbian_counters(source, corpus) if source and recipe.hebbian else None,
        amend=amend,
        quiet=quiet,
    )


def inputs_of(source: Run | None, labels: SoftLabels | None) -> dict[str, Input]:
    """Return the inputs of such a run besides the corpus."""
    inputs = {} if source is None else {"source": source_input(source)}
    if labels is not None:
        inputs["labels"] = Input(path=labels.path, fingerprint=labels.fingerprint)
    return inputs


def source_input(source: Run) -> Input:
    """Return the source run as an input, with its model's fingerprint."""
    return Input(path=source.path, fingerprint=file_fingerprint(source.best))


def hebbian_counters(source: Run, corpus: Corpus) -> Mapping[str, Tensor]:
    """Return the word counts of the source's Hebbian update, or of the training split."""
    return source.counters() or {SEEN: torch.tensor(corpus.vocabulary.counts, dtype=torch.int32)}


def file_fingerprint(file: Path) -> str:
    """Return the hash of a file."""
    if not file.is_file():
        raise RunError(f"{file} does not exist: has the run been evaluated yet?")
    return file_sha256(file)
