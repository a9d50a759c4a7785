"""The speed of this machine with a model: measured once per shape, then kept."""

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
from micronet_lm.files import read_json, write_text
from micronet_lm.machine import cache_folder, processor_identity
from micronet_lm.training.device import gpu_name

DECIDING = ("batch", "window", "accumulate", "precision", "sampling")
"""Keys of `train` that decide how long a step takes."""


FORM = 2
"""Version of the measurement; others are made again."""

DAY = 86_400
"""Seconds for which a measurement is kept: the machine may have been busy."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Time and memory of a model of some shape on this machine."""

    step_seconds: float
    """Seconds per training step."""
    read_seconds: float
    """Seconds per token of evaluation."""
    label_seconds: float
    """Seconds per token of soft labels."""
    read_memory: int
    """Memory of evaluation in bytes."""
    train_memory: int
    """Memory of training in bytes."""


def measured_threads() -> int:
    """Return the number of threads that speed is measured with."""
    return torch.get_num_threads()


def measured_device() -> str:
    """Return what speed is measured with: the GPU where there is one, or threads."""
    threads = measured_threads()
    many = "1 thread" if threads == 1 else f"{threads} threads"
    gpu = gpu_name()
    return f"{f'{gpu} and ' if gpu else ''}{many} (OMP_NUM_THREADS)"


def speed_of(recipe: Recipe) -> Speed:
    """Measure a few steps of training and reading, unless a measurement is kept."""
    tree = recipe.model_dump(mode="json", exclude={"corpus", "prune", "search", "quantize"})
    asked = {
        "sections": {k: v for k, v in tree.items() if k != "train"},
        "train": {key: tree["train"][key] for key in DECIDING},
        "machine": [processor_identity(), measured_device(), torch.__version__, FORM],
    }
    key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
    file = cache_folder() / f"speed-{key}.json"
    try:
        if time.time() - file.stat().st_mtime < DAY:
            return Speed(**read_json(file))
    except (OSError, ValueError, TypeError):
        pass
    found = Speed(**_measure(tree))
    with suppress(OSError):  # without a writable cache folder it is measured again next time
        write_text(file, json.dumps(asdict(found)) + "\n")
    return found


def _measure(tree: dict[str, Any]) -> dict[str, Any]:
    words = [sys.executable, "-m", "micronet_lm.pipeline.speedometer"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(measured_threads())}
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
            f"the speed of this machine cannot be measured ({why}): choose a smaller model if it "
            "does not fit into memory"
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
