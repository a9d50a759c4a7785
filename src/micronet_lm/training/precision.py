"""Which number format training's matrix products use."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

Precision = Literal["auto", "float32", "bfloat16"]


def has_bfloat16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 matrices by itself, not by emulation."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capability = torch.cpu.get_capabilities()
    return bool(
        capability.get("avx512_bf16") or capability.get("amx_bf16") or capability.get("bf16")
    )


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return the context that a training step's forward pass runs in."""
    if precision == "bfloat16" or (precision == "auto" and has_bfloat16(device)):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()
