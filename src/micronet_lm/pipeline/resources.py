"""What a stage asks of a cluster: time, memory, processors, GPUs, and where it may run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from micronet_lm.errors import UsageError
from micronet_lm.pipeline.costs import Cost

TIME_MARGIN, SPARE_MINUTES = 3.0, 30
"""A job may take this many times its estimate, which was measured on another machine, and more."""

MEMORY_MARGIN, SPARE_MEMORY = 1.5, 2 << 30
"""A job gets this many times the memory of its estimate, and some more."""

DEFAULT_MINUTES, DEFAULT_MEMORY = 24 * 60, 8 << 30
"""Time limit and memory of a job without an estimate."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What the jobs of a pool ask for; None leaves a choice to the estimate or to the cluster."""

    minutes: Mapping[str, int] = field(default_factory=dict)
    """Time limit by the stage's name, or under an empty name for all others."""
    memory: Mapping[str, int] = field(default_factory=dict)
    """Memory in bytes, likewise."""
    gpus: Mapping[str, int] = field(default_factory=dict)
    """GPUs, likewise."""
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    setup: tuple[str, ...] = ()
    """Lines of shell that run before the work, such as `module load`."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Other options of sbatch, by their names."""

    def of(self, stage: str, cost: Cost) -> dict[str, Any]:
        """Return what a stage's job asks for, as submitit's parameters."""
        minutes = _asked(self.minutes, stage) or _minutes(cost)
        memory = _asked(self.memory, stage) or _memory(cost)
        gpus = _asked(self.gpus, stage)
        named = {
            "slurm_partition": self.partition,
            "slurm_account": self.account,
            "slurm_qos": self.qos,
            "slurm_constraint": self.constraint,
            "slurm_setup": list(self.setup) or None,
            "slurm_additional_parameters": dict(self.more) or None,
            "gpus_per_node": gpus or None,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return {"timeout_min": minutes, "slurm_mem": f"{ceil(memory / (1 << 20))}M", **given}


def _asked(values: Mapping[str, int], stage: str) -> int | None:
    return values.get(stage, values.get(""))


def _minutes(cost: Cost) -> int:
    if cost.seconds is None:
        return DEFAULT_MINUTES
    return ceil(TIME_MARGIN * cost.seconds / 60) + SPARE_MINUTES


def _memory(cost: Cost) -> int:
    if cost.memory is None:
        return DEFAULT_MEMORY
    return ceil(MEMORY_MARGIN * cost.memory) + SPARE_MEMORY


def read_minutes(text: str) -> int:
    """Read a time limit as sbatch has it: M, H:MM:SS, D-H, D-H:MM or D-H:MM:SS."""
    days, dash, rest = text.rpartition("-")
    try:
        parts = [int(part) for part in rest.split(":")]
        if len(parts) > 3 or min(parts) < 0 or int(days if dash else 0) < 0:
            raise ValueError
        if dash:
            hours, minutes, seconds = [*parts, 0, 0][:3]
        elif len(parts) == 1:
            hours, minutes, seconds = 0, parts[0], 0
        elif len(parts) == 2:
            hours, (minutes, seconds) = 0, parts
        else:
            hours, minutes, seconds = parts
        whole = int(days or 0) * 1440 + hours * 60 + minutes + ceil(seconds / 60)
        if whole < 1:
            raise ValueError
    except ValueError:
        raise UsageError(
            f"--time must be minutes or a time such as 4:00:00 or 1-12:00:00, got {text}"
        ) from None
    return whole


def read_memory(text: str) -> int:
    """Read an amount of memory as sbatch has it: M, or with K, M, G or T behind it."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "M")
    try:
        size = int(float(number) * units[unit])
        if size < 1 << 20:
            raise ValueError
    except (ValueError, KeyError, OverflowError):
        raise UsageError(
            f"--memory must be megabytes, or an amount such as 16G, got {text}"
        ) from None
    return size
