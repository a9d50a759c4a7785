"""What runs saved and reported."""

from pathlib import Path
from typing import Any

import torch

from micronet_lm.training.checkpoint import read_checkpoint
from micronet_lm.training.metrics import read_metrics


def same_tensors(one: Path, other: Path) -> bool:
    """Tell whether two checkpoints hold the same tensors, bit for bit."""
    first, second = read_checkpoint(one).tensors, read_checkpoint(other).tensors
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def train_lines(run: Path) -> list[dict[str, Any]]:
    """Read what a run reported of its training steps."""
    lines = read_metrics(run / "metrics.jsonl")
    return [line for line in lines if line["kind"] == "train"]
