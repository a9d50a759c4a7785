"""Run folders: names of files, recipe, inputs, checkpoints; never torch."""

from micronet_lm.runs.checkpoint import FORMAT, PREFIX, CheckpointReader, Progress, open_checkpoint
from micronet_lm.runs.folder import (
    Which,
    check_run,
    checkpoint_file,
    is_run,
    run_corpus,
    run_input,
    run_recipe,
)

__all__ = [
    "FORMAT",
    "PREFIX",
    "CheckpointReader",
    "Progress",
    "Which",
    "check_run",
    "checkpoint_file",
    "is_run",
    "open_checkpoint",
    "run_corpus",
    "run_input",
    "run_recipe",
]
