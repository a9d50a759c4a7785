"""What a stage asks of a cluster: time, memory, nodes, GPUs, and where it may run.

What the command line says of a stage comes first, then what the recipe says of it, then what the
command line says of all stages, then the plan's estimate with a margin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from micronet_lm.config import JobConfig
from micronet_lm.config.cluster import memory_bytes
from micronet_lm.errors import UsageError
from micronet_lm.pipeline.costs import Cost
from micronet_lm.pipeline.stage import Stage

SHARED = ("teacher", "soft-labels", "student", "sensitivity", "prune", "quantize")
"""Stages whose work several processes can share, on one node or on several."""

COMPUTING = (*SHARED, "search-cache", "search-again")
"""Stages that a GPU makes faster; the others get one only if it is asked for by name."""

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
    """GPUs per node, likewise."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Nodes, likewise; those for all stages only count where processes can share the work."""
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    setup: tuple[str, ...] = ()
    """Lines of shell that run before the work, such as `module load`."""
    python: str | None = None
    """Shell words that start Python in a job, such as those of a container; None: this Python."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Other options of sbatch, by their names."""

    def of(self, stage: Stage, cost: Cost, threads: int = 1) -> dict[str, Any]:
        """Return what a stage's job asks for, as submitit's parameters."""
        said = stage.job or JobConfig()
        limit = None if said.hours is None else ceil(60 * said.hours)
        room = None if said.memory is None else memory_bytes(said.memory)
        each = self.processes(stage)
        minutes = _asked(self.minutes, stage, limit) or _minutes(cost)
        memory = _asked(self.memory, stage, room) or each * _memory(cost)
        nodes = self.node_count(stage)
        named = {
            "slurm_partition": said.partition or self.partition,
            "slurm_account": self.account,
            "slurm_qos": self.qos,
            "slurm_constraint": self.constraint,
            "slurm_setup": list(self.setup) or None,
            "slurm_additional_parameters": dict(self.more) or None,
            "gpus_per_node": self.gpu_count(stage) or None,
            "nodes": nodes if nodes > 1 else None,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return {
            "timeout_min": minutes,
            "slurm_mem": f"{ceil(memory / (1 << 20))}M",
            "cpus_per_task": threads * each,
            **given,
        }

    def gpu_count(self, stage: Stage) -> int:
        """Return how many GPUs a stage's job gets on each node."""
        said = stage.job.gpus if stage.job else None
        named = self.gpus.get(stage.name, said)
        if named is not None:
            return named
        general = self.gpus.get("", 0)
        if stage.name in SHARED:
            return general
        return min(general, 1) if stage.name in COMPUTING else 0

    def node_count(self, stage: Stage) -> int:
        """Return how many nodes a stage's job gets; refuse several for work of one process."""
        said = stage.job.nodes if stage.job else None
        named = self.nodes.get(stage.name, said)
        if stage.name in SHARED:
            return named or self.nodes.get("", 1)
        if named is not None and named > 1:
            raise UsageError(
                f"the stage {stage.name} is the work of one process, so it cannot have {named} "
                f"nodes; stages that can are {', '.join(SHARED)}"
            )
        return 1

    def processes(self, stage: Stage) -> int:
        """Return how many processes work on a stage on each node: one per GPU."""
        return max(1, self.gpu_count(stage)) if stage.name in SHARED else 1

    def check(self, stages: Sequence[Stage]) -> None:
        """Refuse unknown names of stages, and processes that cannot share a stage."""
        for stage in stages:
            self._check_batch(stage, self.node_count(stage) * self.processes(stage))
        known = {stage.name for stage in stages}
        options = {"time": self.minutes, "memory": self.memory, "gpus": self.gpus}
        for option, values in {**options, "nodes": self.nodes}.items():
            for name in values.keys() - known - {""}:
                raise UsageError(
                    f"--{option} {name}=...: there is no stage {name} here; the stages are "
                    f"{', '.join(sorted(known))}"
                )

    def _check_batch(self, stage: Stage, processes: int) -> None:
        """Refuse processes that cannot divide a training's batch evenly."""
        train = stage.settings.get("train")
        if train and train["batch"] % (processes * train["accumulate"]):
            raise UsageError(
                f"the stage {stage.name} has batches of {train['batch']} in {train['accumulate']} "
                f"parts, which {processes} processes cannot divide evenly: choose other numbers of "
                f"--nodes and --gpus, or another --{stage.keys}train.batch"
            )


def _asked(values: Mapping[str, int], stage: Stage, said: int | None) -> int | None:
    """Return what was said of a stage, or of all; `said` is the recipe's word."""
    return values.get(stage.name) or said or values.get("")


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
    try:
        return memory_bytes(text)
    except ValueError as error:
        raise UsageError(f"--memory {error}") from None
