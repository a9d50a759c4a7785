"""The precision of a run's products: chosen once, kept on resume, the same in all processes."""

import os
import select
import signal
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from micronet_lm.errors import ConfigError, RunError
from micronet_lm.machine import processor_name
from micronet_lm.training.device import multiplies_bfloat16
from micronet_lm.training.precision.verdict import (
    HELD_BACK,
    ISA_VARIABLE,
    hold_back,
    machine_verdict,
)
from micronet_lm.training.processes import Processes

Precision = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True, kw_only=True)
class Products:
    """A precision, and the setting of torch that it needs on this machine."""

    precision: Literal["float32", "bfloat16", "float16"]
    """Precision of training's products; weights, optimizer, softmax and evaluation stay in fp32."""

    isa: str | None = None
    """Value of ONEDNN_MAX_CPU_ISA that it needs; None keeps torch's choice."""

    why: str = ""
    """Reason of the choice, in a few words."""

    def __str__(self) -> str:
        """Describe it in one line."""
        held = "" if self.isa is None else f" with {ISA_VARIABLE}={self.isa}"
        return f"products in {self.precision}{held}{f' ({self.why})' if self.why else ''}"

    def as_json(self) -> dict[str, Any]:
        """Return the values that a run records."""
        return {"precision": self.precision, "onednn_max_cpu_isa": self.isa, "why": self.why}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "Products":
        """Read the values that a run records; raise ValueError for invalid ones."""
        precision, isa = kept.get("precision"), kept.get("onednn_max_cpu_isa")
        if precision not in ("float32", "bfloat16", "float16") or isa not in (None, HELD_BACK):
            raise ValueError(f"precision {precision!r}, onednn_max_cpu_isa {isa!r}")
        return cls(precision=precision, isa=isa, why=str(kept.get("why", "")))


FLOAT32 = Products(precision="float32")
"""The precision that works everywhere."""

_CHOICES = (
    FLOAT32,
    Products(precision="bfloat16"),
    Products(precision="bfloat16", isa=HELD_BACK),
    Products(precision="float16"),
)
"""All choices, so that processes can exchange one as a number."""


def autocast(products: Products, device: torch.device) -> AbstractContextManager[object]:
    """Return the context that a training step's forward pass runs in."""
    if products.precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=getattr(torch, products.precision))


def choose_products(asked: Precision, device: torch.device) -> Products:
    """Return the products for a recipe's `train.precision` on this machine."""
    if asked == "float32":
        return Products(precision="float32", why="as the recipe says")
    if asked == "float16":
        return Products(precision="float16", why="as the recipe says")
    if device.type != "cpu":
        if asked == "bfloat16":
            return Products(precision="bfloat16", why="as the recipe says")
        if multiplies_bfloat16():
            return Products(precision="bfloat16", why="auto: the GPU multiplies it")
        return Products(precision="float16", why="auto: the GPU does not multiply bfloat16")
    verdict = machine_verdict()
    if asked == "auto":
        return Products(precision=verdict.precision, isa=verdict.isa, why=f"auto: {verdict.why}")
    if (best := verdict.best) is None:
        raise ConfigError(
            f"train.precision bfloat16 does not work on this machine ({verdict.why}): choose auto "
            "or float32"
        )
    return Products(precision="bfloat16", isa=best.isa, why="as the recipe says")


def agree_on_products(
    asked: Precision, kept: Products | None, processes: Processes, *, resume: str
) -> Products:
    """Return the products of all processes: the leader chooses, and each process tries them first.

    `kept` is what the run was started with, which `auto` keeps. `resume` is the command that
    resumes the run.
    """
    device = processes.device
    chosen = FLOAT32
    if processes.leads:
        keeps = asked == "auto" and kept is not None
        chosen = _working(kept, device) if keeps and kept else choose_products(asked, device)
    code = int(processes.share(float(_code(chosen))))
    mine = chosen if processes.leads else _CHOICES[code]
    ready = device.type != "cpu" or _prepare(mine)
    if processes.mean([float(ready)])[0] == 1.0:
        return mine
    where = f"this machine ({processor_name()})" if not ready else "another process's machine"
    if asked == "auto" and kept is None:
        why = f"{mine.precision} products do not work on {where}"
        return Products(precision="float32", why=why)
    raise RunError(
        f"the run's products are in {mine.precision}, which does not work on {where}; resume in "
        f"fp32, not bit-exactly: {resume} --train.precision float32"
    )


def working_products() -> list[Products]:
    """Return every precision that works in this process, ready to be used, even if slower."""
    best = machine_verdict().best
    low = None if best is None else Products(precision="bfloat16", isa=best.isa)
    return [FLOAT32, low] if low is not None and _prepare(low) else [FLOAT32]


def prepare_process() -> None:
    """Apply this machine's verdict to this process, before torch's first product.

    A process that uses torch before training must call this first: torch reads its setting only
    once.
    """
    if (isa := machine_verdict().isa) is not None and ISA_VARIABLE not in os.environ:
        hold_back(isa)


def _working(kept: Products, device: torch.device) -> Products:
    """Return a run's products with the setting that they need on this machine."""
    if kept.precision != "bfloat16" or device.type != "cpu":
        return kept
    verdict = machine_verdict()
    same = any(trial.works and trial.isa == kept.isa for trial in verdict.trials)
    if same or verdict.best is None:  # if none works, a fork will show it
        return kept
    return replace(kept, isa=verdict.best.isa)


def _code(products: Products) -> int:
    same = [(p.precision, p.isa) == (products.precision, products.isa) for p in _CHOICES]
    return same.index(True)


def _prepare(products: Products) -> bool:
    """Prepare this process for its products; return whether they work in it.

    torch reads its setting at its first product, which this process may already have done, and a
    run may come from another machine: so a fork tries the products first, as it may crash.
    """
    if products.precision == "float32":
        return True
    if products.isa is not None:
        hold_back(products.isa)
    return survives_products(products)


def survives_products(products: Products) -> bool:
    """Return whether a fork of this process survives products in a precision."""
    dtype = getattr(torch, products.precision)
    reader, writer = os.pipe()
    with (
        warnings.catch_warnings()
    ):  # Python warns of forks beside threads; this fork uses none of them
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            torch.set_num_threads(1)
            a, b = (torch.ones(128, 128, dtype=dtype, requires_grad=True) for _ in "ab")
            (a @ b).sum().backward()
            os.write(writer, b"1")
        finally:
            os._exit(0)
    os.close(writer)
    answered = bool(select.select([reader], [], [], 10.0)[0]) and os.read(reader, 1) == b"1"
    os.close(reader)
    if not answered:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return answered
