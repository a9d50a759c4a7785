"""The device of this process, and how arrays get there."""

import os
import subprocess
import sys
from functools import cache
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

ACCELERATOR = "cuda"
"""Kind of device that is used where there is one."""


def this_device() -> torch.device:
    """Return the GPU of this process, by its number on its host, or the CPU if there is none."""
    if not _is_available():
        return torch.device("cpu")
    return torch.device(ACCELERATOR, int(os.environ.get("LOCAL_RANK", "0")))


@cache
def gpu_name() -> str | None:
    """Return the name of this machine's GPU; None without one.

    Another process asks the GPU: a process that has used it cannot fork any more, and the stages
    of a pipeline are forks.
    """
    if torch.cuda.device_count() == 0:
        return None
    words = [sys.executable, "-c", "import torch; print(torch.cuda.get_device_name())"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() or "a GPU"


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has done all that was launched, so that a clock tells how long it took."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def multiplies_bfloat16() -> bool:
    """Return whether this process's GPU has units for bfloat16 products."""
    return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def on_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return an array as a tensor on a device.

    To a GPU it goes from pinned memory and without waiting: the copy is in the GPU's queue, and
    this process prepares what comes next.
    """
    tensor = torch.from_numpy(array)
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


def _is_available() -> bool:
    return torch.cuda.is_available()
