"""The jobs of a pool: submitted, watched, found again by another parent, and resubmitted.

A job's end without a result is no end of its stage if the work is not to blame: after a time limit,
a preemption or the loss of a node, the stage resumes in a new job, as long as it makes progress.
"""

import importlib.util
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from micronet_lm.errors import PipelineError, RunError, UsageError, install_extra
from micronet_lm.files import make_folder, read_json, refusing_damage, write_text
from micronet_lm.pipeline.cluster_queue import (
    GONE,
    REMEDIES,
    RESUMABLE,
    JobState,
    cancel,
    exit_code,
    job_states,
)
from micronet_lm.pipeline.costs import Cost
from micronet_lm.pipeline.jobs import FULL, LOST, STOPPED, StageJob, has_room
from micronet_lm.pipeline.resources import Resources
from micronet_lm.pipeline.runner import Tell
from micronet_lm.pipeline.stage import Stage
from micronet_lm.pipeline.workspace import Workspace
from micronet_lm.training.metrics import read_metrics

PROGRAMS = ("sbatch", "srun", "squeue", "scancel")
"""Programs of SLURM that jobs are submitted and watched with."""

MONTH = 60 * 24 * 30
"""Time limit of a job on this machine in minutes; no training takes longer."""

ASK_SECONDS = 3.0
"""Seconds between two questions to the cluster."""

SETTLE_SECONDS = 10.0
"""How long the result of a job that has ended may take to appear in a network folder."""

TELL_SECONDS = 60.0
"""Seconds between two reports of a job's progress."""

FRUITLESS = 3
"""Jobs of a stage that may end one after the other without any progress."""

TIMEOUTS = 1000
"""How often a job may reach its time limit and resume."""


def has_submitit() -> bool:
    """Return whether submitit is installed."""
    return importlib.util.find_spec("submitit") is not None


@dataclass(frozen=True, kw_only=True)
class End:
    """How a stage ended."""

    stage: Stage
    error: str | None
    """Why it failed; None if it is complete."""


class Running:
    """A job that was submitted."""

    def __init__(self, stage: Stage, job: Any, mark: float = 0.0, fruitless: int = 0) -> None:
        self.stage, self.job = stage, job
        self.number = str(job.job_id)
        self.mark = mark
        """How far the stage had come when the job was submitted."""
        self.fruitless = fruitless
        """Number of jobs before this one that made no progress."""
        self.said = ""
        self.told = 0.0
        self.dead_since: float | None = None

    @property
    def has_result(self) -> bool:
        """Whether the job has left a result."""
        return bool(self.job.paths.result_pickle.exists())


class LocalJobs:
    """Jobs on this machine."""

    def __init__(self, workspace: Workspace, threads: int, tell: Tell) -> None:
        self.workspace, self.threads, self.tell = workspace, threads, tell
        self.running: dict[str, Running] = {}
        """Submitted jobs by the fingerprints of their stages."""
        self.folder = workspace.root / "jobs" / "%j"

    def reattach(self, stages: Iterable[Stage]) -> list[Stage]:
        """Return the stages whose jobs of an earlier parent are still under way: none here."""
        return []

    def submit(self, stage: Stage) -> bool:
        """Submit a stage; return False if that must be tried again later."""
        import submitit
        import torch

        executor = submitit.AutoExecutor(folder=self.folder, cluster="local")
        executor.update_parameters(
            timeout_min=MONTH,
            cpus_per_task=self.threads,
            gpus_per_node=torch.cuda.device_count(),  # or submitit would hide them
        )
        job = executor.submit(StageJob(self.workspace, stage, self.threads))
        self.running[stage.fingerprint] = Running(stage, job)
        self.tell(f"{named(stage)}: begins")
        return True

    def ended(self) -> Iterator[End]:
        """Return the stages that have ended since the last call."""
        for key, own in list(self.running.items()):
            if own.job.done():
                del self.running[key]
                yield End(stage=own.stage, error=_error(own.job))


class ClusterJobs(LocalJobs):
    """Jobs of a SLURM cluster."""

    def __init__(
        self,
        workspace: Workspace,
        threads: int,
        tell: Tell,
        resources: Resources,
        costs: Mapping[str, Cost],
    ) -> None:
        if not has_submitit():
            raise UsageError(f"--executor slurm needs submitit: {install_extra('cluster')}")
        if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
            raise UsageError(
                f"--executor slurm needs {', '.join(missing)} of SLURM: run it on a login node"
            )
        super().__init__(workspace, threads, tell)
        self._resources, self._costs = resources, costs
        self._states: dict[str, JobState] = {}
        self._asked = -ASK_SECONDS
        self._silent = False
        self._ledger = workspace.root / "jobs" / "submitted.json"

    def reattach(self, stages: Iterable[Stage]) -> list[Stage]:
        """Return the stages whose jobs of an earlier parent are still under way, and watch them."""
        kept = _read_ledger(self._ledger)
        wanted = {stage.fingerprint: stage for stage in stages}
        if not kept.keys() & wanted.keys():
            return []
        while not self._ask():
            time.sleep(ASK_SECONDS)
        found = []
        for key in kept.keys() & wanted.keys():
            own = Running(wanted[key], self._job(kept[key]), mark=self._mark(wanted[key]))
            if own.has_result or self._states.get(own.number, GONE).alive:
                self.running[key] = own
                found.append(own.stage)
                self.tell(f"{named(own.stage)}: job {own.number} was submitted before, and is kept")
        self._keep()
        return found

    def submit(self, stage: Stage, fruitless: int = 0) -> bool:
        """Submit a stage; return False if the cluster does not answer."""
        import submitit

        if self._silent and not self._ask():
            return False
        executor = submitit.AutoExecutor(
            folder=self.folder,
            cluster="slurm",
            slurm_max_num_timeout=TIMEOUTS,
            slurm_python=self._resources.python,
        )
        nodes, each = self._resources.node_count(stage), self._resources.processes(stage)
        cost = self._costs.get(stage.fingerprint, Cost())
        asked = self._resources.of(stage, cost, self.threads)
        executor.update_parameters(name=f"micronet-{stage.name}-{stage.fingerprint[:8]}", **asked)
        make_folder(self._ledger.parent)
        try:
            number = executor.submit(
                StageJob(self.workspace, stage, self.threads, nodes, each)
            ).job_id
        except OSError:
            raise  # a folder that cannot be written is not the cluster's fault
        except Exception as error:  # whatever sbatch says
            said = " ".join(str(error).split())[-300:]
            if "Unable to contact" in said or "timed out" in said:
                self._silent = True
                return False
            raise PipelineError(f"the cluster refused the job: {said}") from None
        own = Running(stage, self._job(number), self._mark(stage), fruitless)
        self.running[stage.fingerprint] = own
        self._keep()
        hours = asked["timeout_min"] / 60
        many = f"{nodes} nodes, " if nodes > 1 else ""
        self.tell(
            f"{named(stage)}: submitted as job {own.number}, {many}up to {hours:.1f} hours and "
            f"{asked['slurm_mem']} of memory{' each' if many else ''}"
        )
        return True

    def ended(self) -> Iterator[End]:
        """Return the stages that have ended since the last call; resubmit those that resume."""
        knows = time.monotonic() - self._asked < ASK_SECONDS or self._ask()
        for key, own in list(self.running.items()):
            if own.has_result:
                del self.running[key]
                error = _error(own.job)
                if error is not None and error.startswith(LOST):
                    cancel(own.number)  # or the cluster may run it again beside its successor
                    error = self._resume(own, error)
                self._keep()
                if error is not None or key not in self.running:
                    yield End(stage=own.stage, error=error)
            elif knows and not self._lives(own):
                del self.running[key]
                error = self._ended_without_result(own)
                self._keep()
                if error is not None:
                    yield End(stage=own.stage, error=error)

    def _lives(self, own: Running) -> bool:
        """Return whether a job waits or runs, and tell what is new; an end must be certain."""
        state, now = self._states.get(own.number, GONE), time.monotonic()
        if not state.alive:
            own.dead_since = own.dead_since or now
            return now - own.dead_since < SETTLE_SECONDS
        own.dead_since = None
        if str(state) != own.said:
            own.said, own.told = str(state), now
            self.tell(f"{named(own.stage)}: job {own.number} {state}")
        elif now - own.told > TELL_SECONDS and (far := self._progress(own.stage)):
            own.told = now
            self.tell(f"{named(own.stage)}: job {own.number} {state}, {far}")
        return True

    def _ended_without_result(self, own: Running) -> str | None:
        """Submit the stage of a job that ended without a result again, or return why not."""
        state = self._states.get(own.number, GONE).name
        if state not in RESUMABLE:
            why, code = REMEDIES.get(state, f"its state is {state}"), exit_code(own.number)
            if state == "FAILED" and code == STOPPED:  # by a preemption, and it has saved
                return self._resume(own, "a request to stop")
            if code == FULL or not has_room(self.workspace.root):
                why = f"the disk of {self.workspace.root} is full: free disk space"
            return f"job {own.number} has no result, because {why}; see {self._log(own)}"
        return self._resume(own, state)

    def _resume(self, own: Running, state: str) -> str | None:
        """Submit a stage again, or return why not: its jobs make no progress."""
        moved = self._mark(own.stage) > own.mark
        fruitless = 0 if moved else own.fruitless + 1
        if fruitless >= FRUITLESS:
            return (
                f"{FRUITLESS} jobs one after the other made no progress (the last, {own.number}, "
                f"ended with {state}): give more --time, and see {self._log(own)}"
            )
        self.tell(f"{named(own.stage)}: job {own.number} ended with {state}, so it resumes")
        while not self.submit(own.stage, fruitless):
            time.sleep(ASK_SECONDS)
        return None

    def _ask(self) -> bool:
        """Ask the cluster for the states of all jobs; return whether it answered."""
        self._asked = time.monotonic()
        states = job_states()
        if states is None:
            if not self._silent:
                self.tell("The cluster does not answer; waiting for it.")
            self._silent = True
            return False
        self._silent, self._states = False, states
        return True

    def _job(self, number: str) -> Any:
        """Return a submitted job; its result is that of its first node."""
        import submitit

        return submitit.SlurmJob(folder=self.folder, job_id=number)

    def _log(self, own: Running) -> Path:
        return self.workspace.root / "jobs" / own.number

    def _keep(self) -> None:
        """Write down which jobs are under way, for a parent after this one."""
        numbers = {key: own.number for key, own in self.running.items()}
        write_text(self._ledger, json.dumps(numbers, indent=1) + "\n")

    def _mark(self, stage: Stage) -> float:
        """Return when the stage's folder last changed: a number that grows with its progress."""
        times = [0.0]
        for place, _, names in os.walk(self.workspace.folder(stage)):
            times += [_time(Path(place) / n) for n in names if not n.startswith(".")]
        return max(times)

    def _progress(self, stage: Stage) -> str | None:
        """Return how far a training has come."""
        steps = stage.settings.get("train", {}).get("steps")
        try:
            lines = read_metrics(self.workspace.folder(stage) / "metrics.jsonl")
        except (OSError, RunError):
            return None
        return f"step {lines[-1]['step']:,} of {steps:,}" if lines and steps else None


def named(stage: Stage) -> str:
    """Return a stage's name with the beginning of its fingerprint."""
    return f"{stage.name} {stage.fingerprint[:12]}"


def _time(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _read_ledger(file: Path) -> dict[str, str]:
    """Read the number of each stage's job, by the stage's fingerprint."""
    remedy = "see with squeue which jobs run, then remove it"
    with suppress(FileNotFoundError), refusing_damage(file, PipelineError, remedy):
        kept: dict[str, str] = read_json(file)
        if not all(isinstance(job, str) for job in kept.values()):
            raise ValueError("a job's number is not text")
        return kept
    return {}


def _error(job: Any) -> str | None:
    """Return why a job failed, or None."""
    try:
        said: str | None = job.result()
    except Exception as error:  # any error of one job: it must not end the others
        return " ".join(str(error).split())[-300:] or type(error).__name__
    return said
