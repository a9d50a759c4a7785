"""Run many stages in parallel, each as a job as soon as its inputs are complete.

Jobs use submitit, so that the same calls run on this machine and on a SLURM cluster. Without
submitit, the stages run one after the other in this process.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from micronet_lm.errors import PipelineError
from micronet_lm.machine import core_count
from micronet_lm.pipeline.costs import Cost
from micronet_lm.pipeline.resources import Resources
from micronet_lm.pipeline.runner import Tell, perform, plan, prepare, writing
from micronet_lm.pipeline.stage import Stage, in_order
from micronet_lm.pipeline.submission import ClusterJobs, End, LocalJobs, has_submitit
from micronet_lm.pipeline.workspace import State, Workspace

PAUSE = 0.5
"""Seconds between two checks of the jobs."""

CLUSTER_JOBS = 64
"""Jobs at a time on a cluster, whose queue decides when they run."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Where and how jobs run."""

    executor: Literal["local", "slurm"] = "local"
    """This machine, or a cluster's queue."""
    jobs: int | None = None
    """Number of jobs at a time; if None, as many as have room here, or 64 on a cluster."""
    threads: int = 1
    """Threads per job."""
    resources: Resources = field(default_factory=Resources)
    """What jobs ask of a cluster."""

    @property
    def places(self) -> int:
        """Number of jobs that may run at a time."""
        return self.jobs or (CLUSTER_JOBS if self.executor == "slurm" else room_for_jobs())


def room_for_jobs() -> int:
    """Return one job per core, as long as each can have two gigabytes."""
    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(core_count(), pages // (2 << 30)))


def run_side_by_side(
    workspace: Workspace,
    targets: Sequence[Stage],
    pool: Pool,
    tell: Tell,
    finished: Callable[[Stage], object] = lambda stage: None,
    costs: Mapping[str, Cost] | None = None,
) -> None:
    """Complete all targets; a failed stage does not stop those that do not need it.

    `finished` is called with each stage as soon as it is complete. `costs` are estimates by the
    stages' fingerprints, from which jobs of a cluster get their time and memory.
    """
    with writing(workspace), workspace.locked():
        todo = {own.stage.fingerprint: own.stage for own in plan(workspace, targets) if own.runs}
        if pool.executor == "slurm":
            pool.resources.check(in_order(targets))
        tell(f"{len(todo)} stages to run")
        if pool.executor == "slurm":
            jobs: LocalJobs = ClusterJobs(
                workspace, pool.threads, tell, pool.resources, costs or {}
            )
        elif has_submitit():
            jobs = LocalJobs(workspace, pool.threads, tell)
        else:
            for stage in todo.values():
                tell(f"{stage.name} {stage.fingerprint[:12]}: begins")
                prepare([stage])
                perform(workspace, stage)
                finished(stage)
            return
        failures = _work_off(workspace, todo, jobs, pool.places, tell, finished)
    if failures:
        raise PipelineError(
            f"{len(failures)} of the stages failed; the first is {failures[0]}; the same command "
            "resumes with what is missing"
        )


def _work_off(
    workspace: Workspace,
    todo: dict[str, Stage],
    jobs: LocalJobs,
    places: int,
    tell: Tell,
    finished: Callable[[Stage], object],
) -> list[str]:
    """Submit ready stages and wait for running ones; return the failures."""
    waiting, failures = dict(todo), list[str]()
    for stage in jobs.reattach(todo.values()):
        del waiting[stage.fingerprint]
    while waiting or jobs.running:
        for end in jobs.ended():
            _tell_end(end, len(waiting), failures, tell, finished)
        ready = [key for key, stage in waiting.items() if _ready(workspace, stage, todo)]
        for key in ready[: max(0, places - len(jobs.running))]:
            try:
                submitted = jobs.submit(waiting[key])
            except PipelineError as error:
                end = End(stage=waiting.pop(key), error=str(error))
                _tell_end(end, len(waiting), failures, tell, finished)
                continue
            if not submitted:  # the cluster does not answer: try again
                break
            del waiting[key]
        if not jobs.running and not ready:
            # All waiting stages need one that failed, or whose product was removed meanwhile.
            if waiting and not failures:
                key, stage = next(iter(waiting.items()))
                failures.append(f"{stage.name} {key[:12]}: an input of it vanished")
            break
        time.sleep(PAUSE)
    return failures


def _tell_end(
    end: End,
    waiting: int,
    failures: list[str],
    tell: Tell,
    finished: Callable[[Stage], object],
) -> None:
    """Keep and tell how a stage ended."""
    name = f"{end.stage.name} {end.stage.fingerprint[:12]}"
    if end.error is not None:
        failures.append(f"{name}: {end.error}")
        tell(f"{name}: failed")
        return
    finished(end.stage)
    tell(f"{name}: done, {waiting} waiting")


def _ready(workspace: Workspace, stage: Stage, todo: dict[str, Stage]) -> bool:
    needs = [needed for needed in stage.needs.values() if needed.fingerprint in todo]
    return all(workspace.state(needed) is State.COMPLETE for needed in needs)
