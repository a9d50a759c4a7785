"""What a run that begins with another run's model takes over from it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from micronet_lm.corpus import Corpus
from micronet_lm.errors import RunError
from micronet_lm.training import Input, Run
from micronet_lm.training.checkpoint import read_checkpoint


def source_input(source: Run) -> Input:
    """Say which model it was, wherever the run is."""
    return Input(path=source.path, fingerprint=file_fingerprint(source.best))


def hebbian_counters(source: Run, corpus: Corpus) -> Mapping[str, Tensor]:
    """How often the source's Hebbian update has seen each word, or a training split has it."""
    name = "plugin.hebbian.seen"
    if source.last.is_file():
        saved = read_checkpoint(source.last, prefix=name).tensors
        if saved:
            return saved
    return {name: torch.tensor(corpus.vocabulary.counts, dtype=torch.int32)}


def file_fingerprint(file: Path) -> str:
    """Give one hash of a file."""
    if not file.is_file():
        raise RunError(f"{file} does not exist: has the run been evaluated yet?")
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
