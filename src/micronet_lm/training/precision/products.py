"""What a run's products are computed in: chosen once, kept on resume, shared by processes."""

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
from micronet_lm.training.precision.verdict import (
    HELD_BACK,
    ISA_VARIABLE,
    hold_back,
    machine_verdict,
)
from micronet_lm.training.processes import Processes

Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Products:
    """A number format, and the setting of torch that it needs here."""

    precision: Literal["float32", "bfloat16"]
    """Format of training's products; weights, optimizer, softmax and evaluation stay in fp32."""

    isa: str | None = None
    """Value of ONEDNN_MAX_CPU_ISA that it needs; nothing leaves torch's choice alone."""

    why: str = ""
    """Who or what chose it, in a few words."""

    def __str__(self) -> str:
        """Say it in one line."""
        held = "" if self.isa is None else f" with {ISA_VARIABLE}={self.isa}"
        return f"products in {self.precision}{held}{f' ({self.why})' if self.why else ''}"

    def as_json(self) -> dict[str, Any]:
        """Return what a run remembers."""
        return {"precision": self.precision, "onednn_max_cpu_isa": self.isa, "why": self.why}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "Products":
        """Read what a run remembers; ValueError where it makes no sense."""
        precision, isa = kept.get("precision"), kept.get("onednn_max_cpu_isa")
        if precision not in ("float32", "bfloat16") or isa not in (None, HELD_BACK):
            raise ValueError(f"precision {precision!r}, onednn_max_cpu_isa {isa!r}")
        return cls(precision=precision, isa=isa, why=str(kept.get("why", "")))


FLOAT32 = Products(precision="float32")
"""What works everywhere."""

_CHOICES = (
    FLOAT32,
    Products(precision="bfloat16"),
    Products(precision="bfloat16", isa=HELD_BACK),
)
"""Everything that processes may have to agree on, so that a number can name it."""


def autocast(products: Products, device: torch.device) -> AbstractContextManager[object]:
    """Return the context that a training step's forward pass runs in."""
    if products.precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def choose_products(asked: Precision, device: torch.device) -> Products:
    """Turn a recipe's `train.precision` into what works on this machine."""
    if asked == "float32":
        return Products(precision="float32", why="as the recipe says")
    if device.type != "cpu":
        native = bool(torch.cuda.is_bf16_supported(including_emulation=False))
        if asked == "bfloat16" or native:
            return Products(precision="bfloat16", why="the GPU multiplies it")
        return Products(precision="float32", why="the GPU does not multiply bfloat16")
    verdict = machine_verdict()
    if asked == "auto":
        return Products(precision=verdict.precision, isa=verdict.isa, why=f"auto: {verdict.why}")
    if (best := verdict.best) is None:
        raise ConfigError(
            f"train.precision bfloat16 does not work on this machine ({verdict.why}); choose auto "
            "or float32"
        )
    return Products(precision="bfloat16", isa=best.isa, why="as the recipe says")


def agree_on_products(
    asked: Precision, kept: Products | None, processes: Processes, *, resume: str
) -> Products:
    """Choose what all processes use: the leader chooses, and each tries it before it is used.

    `kept` is what the run was begun with; a recipe that says `auto` keeps to it. `resume` is the
    command that goes on with the run.
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
        return Products(precision="float32", why=f"bfloat16 products do not work on {where}")
    raise RunError(
        f"the run's products are in bfloat16, which does not work on {where}; go on in fp32, to "
        f"other bits: {resume} --train.precision float32"
    )


def working_products() -> list[Products]:
    """Return every format that works in this process, whether it pays or not, ready to be used."""
    best = machine_verdict().best
    low = None if best is None else Products(precision="bfloat16", isa=best.isa)
    return [FLOAT32, low] if low is not None and _prepare(low) else [FLOAT32]


def prepare_process() -> None:
    """Apply this machine's verdict to this process, before torch's first product.

    Who trains after other work with torch in the same process calls this first: torch reads its
    setting once.
    """
    if (isa := machine_verdict().isa) is not None and ISA_VARIABLE not in os.environ:
        hold_back(isa)


def _working(kept: Products, device: torch.device) -> Products:
    """Return what a run keeps, in the setting that it needs on this machine."""
    if kept.precision == "float32" or device.type != "cpu":
        return kept
    verdict = machine_verdict()
    same = any(trial.works and trial.isa == kept.isa for trial in verdict.trials)
    if same or verdict.best is None:  # where none works, a fork will show it
        return kept
    return replace(kept, isa=verdict.best.isa)


def _code(products: Products) -> int:
    same = [(p.precision, p.isa) == (products.precision, products.isa) for p in _CHOICES]
    return same.index(True)


def _prepare(products: Products) -> bool:
    """Make this process ready for its products; tell whether they work in it.

    torch reads its setting at its first product, which this process may have behind it, and a run
    may have been begun on another machine: so a fork tries first, as it may die.
    """
    if products.precision == "float32":
        return True
    if products.isa is not None:
        hold_back(products.isa)
    return survives_bfloat16()


def survives_bfloat16() -> bool:
    """Do bfloat16 products in a fork of this process; tell whether it lived through them."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():  # Python warns of forks beside threads: this one needs none
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            torch.set_num_threads(1)
            a, b = (torch.ones(128, 128, dtype=torch.bfloat16, requires_grad=True) for _ in "ab")
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
