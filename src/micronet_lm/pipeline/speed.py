"""How fast this machine is with a model: measured once a shape, then remembered."""

import hashlib
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import torch

from micronet_lm.config import Recipe
from micronet_lm.errors import PipelineError
from micronet_lm.files import write_text
from micronet_lm.machine import cache_folder, processor_identity

DECIDING = ("batch", "window", "accumulate", "precision", "sampling")
"""Keys of `train` that decide how long a step takes."""


DAY = 86_400
"""Seconds for which a measurement is remembered: the machine may have been busy."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """What a model of some shape takes here."""

    step_seconds: float
    """A training step."""
    read_seconds: float
    """A token of evaluation."""
    label_seconds: float
    """A token of soft labels."""
    read_memory: int
    """Bytes that evaluation needs."""
    train_memory: int
    """Bytes that training needs."""


def speed_of(recipe: Recipe) -> Speed:
    """Measure a few steps of training and reading, unless this machine has been asked before."""
    tree = recipe.model_dump(mode="json", exclude={"corpus", "prune", "search", "quantize"})
    asked = {
        "sections": {k: v for k, v in tree.items() if k != "train"},
        "train": {key: tree["train"][key] for key in DECIDING},
        "machine": [processor_identity(), torch.get_num_threads(), torch.__version__],
    }
    key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
    file = cache_folder() / f"speed-{key}.json"
    try:
        if time.time() - file.stat().st_mtime < DAY:
            return Speed(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        pass
    found = Speed(**_measure(tree))
    with suppress(OSError):  # a machine without a place to remember it is asked again
        write_text(file, json.dumps(asdict(found)) + "\n")
    return found


def _measure(tree: dict[str, Any]) -> dict[str, Any]:
    words = [sys.executable, "-m", "micronet_lm.pipeline.speedometer"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    done = subprocess.run(  # noqa: S603
        words,
        input=json.dumps(tree),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise PipelineError(
            f"the speed of this machine cannot be measured ({why}); the model may be too large for "
            "its memory"
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
