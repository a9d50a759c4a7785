"""The device of this process, and how arrays get there."""

import os
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
