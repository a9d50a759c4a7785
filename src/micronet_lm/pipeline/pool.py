"""Run many stages in parallel, each as a job as soon as its inputs are complete.

Jobs use submitit, so that the same calls run on this machine and on a SLURM cluster. Without
submitit, the stages run one after the other in this process.
"""

import importlib.util
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from micronet_lm.errors import MicronetError, PipelineError, UsageError
from micronet_lm.machine import core_count
from micronet_lm.pipeline.child import do_in_child
from micronet_lm.pipeline.runner import Tell, perform, plan, prepare, writing
from micronet_lm.pipeline.stage import Stage
from micronet_lm.pipeline.workspace import State, Workspace

PAUSE = 0.5
"""Seconds between two checks of the jobs."""

CLUSTER_JOBS = 64
"""Jobs at a time on a cluster, whose queue decides when they run."""

MONTH = 60 * 24 * 30
"""Time limit of a job in minutes; no training takes longer."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Where and how jobs run."""

    executor: Literal["local", "slurm"] = "local"
    """This machine, or a cluster's queue."""
    jobs: int | None = None
    """Number of jobs at a time; if None, as many as have room here, or 64 on a cluster."""
    threads: int = 1
    """Threads per job."""
    partition: str | None = None
    """Queue of the cluster; None for its default."""
    memory: int = 8
    """Memory of a cluster's job in gigabytes."""

    @property
    def places(self) -> int:
        """How many jobs may run at a time."""
        return self.jobs or (CLUSTER_JOBS if self.executor == "slurm" else room_for_jobs())


def room_for_jobs() -> int:
    """Return one job per core, as long as each can have two gigabytes."""
    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(core_count(), pages // (2 << 30)))


def run_side_by_side(
    workspace: Workspace, targets: Sequence[Stage], pool: Pool, tell: Tell
) -> None:
    """Complete all targets; a failed stage does not stop those that do not need it."""
    with writing(workspace), workspace.locked():
        todo = {own.stage.fingerprint: own.stage for own in plan(workspace, targets) if own.runs}
        tell(f"{len(todo)} stages to run")
        executor = _executor(workspace, pool)
        if executor is None:
            for stage in todo.values():
                tell(f"{stage.name} {stage.fingerprint[:12]}: begins")
                prepare([stage])
                perform(workspace, stage)
            return
        failures = _work_off(workspace, todo, executor, pool, tell)
    if failures:
        raise PipelineError(
            f"{len(failures)} of the stages failed; the first is {failures[0]}; the same command "
            "resumes with what is missing"
        )


def _work_off(
    workspace: Workspace, todo: dict[str, Stage], executor: Any, pool: Pool, tell: Tell
) -> list[str]:
    """Submit ready stages and wait for running ones; return the failures."""
    waiting, running, failures = dict(todo), dict[str, Any](), list[str]()
    places = pool.places
    while waiting or running:
        for key, job in list(running.items()):
            if job.done():
                stage = todo[key]
                del running[key]
                if (error := _error(job)) is not None:
                    failures.append(f"{stage.name} {key[:12]}: {error}")
                    tell(f"{stage.name} {key[:12]}: failed")
                else:
                    tell(f"{stage.name} {key[:12]}: done, {len(waiting)} waiting")
        ready = [key for key, stage in waiting.items() if _ready(workspace, stage, todo)]
        for key in ready[: max(0, places - len(running))]:
            stage = waiting.pop(key)
            tell(f"{stage.name} {key[:12]}: begins")
            running[key] = executor.submit(_perform, workspace, stage, pool.threads)
        if not running:
            break  # all waiting stages need one that failed
        time.sleep(PAUSE)
    return failures


def _ready(workspace: Workspace, stage: Stage, todo: dict[str, Stage]) -> bool:
    needs = [needed for needed in stage.needs.values() if needed.fingerprint in todo]
    return all(workspace.state(needed) is State.COMPLETE for needed in needs)


def _perform(workspace: Workspace, stage: Stage, threads: int) -> str | None:
    """Do one stage in a job; return the message of an expected error."""
    import torch

    torch.set_num_threads(threads)
    try:
        prepare([stage])
        do_in_child(partial(perform, workspace, stage), stage)
    except MicronetError as error:
        return str(error)
    return None


def _error(job: Any) -> str | None:
    """Return why a job failed, or None."""
    try:
        said: str | None = job.result()
    except Exception as error:  # any error of one job: it must not end the others
        return " ".join(str(error).split())[-300:] or type(error).__name__
    return said


def _executor(workspace: Workspace, pool: Pool) -> Any:
    """Return submitit's executor, or None if stages run in this process."""
    if importlib.util.find_spec("submitit") is None:
        if pool.executor == "slurm":
            raise UsageError("--executor slurm needs submitit: pip install 'micronet-lm[cluster]'")
        return None
    import submitit

    executor = submitit.AutoExecutor(folder=workspace.root / "jobs" / "%j", cluster=pool.executor)
    executor.update_parameters(timeout_min=MONTH, cpus_per_task=pool.threads)
    if pool.executor == "slurm":
        own = {"slurm_partition": pool.partition} if pool.partition else {}
        executor.update_parameters(mem_gb=pool.memory, **own)
    return executor
