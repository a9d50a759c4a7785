"""What SLURM says of jobs, by `squeue` alone: many clusters have no accounting (`sacct`)."""

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass

WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD")
RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING")
RESUMABLE = ("TIMEOUT", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "GONE")
"""Ends that are no fault of the work: the stage resumes in a new job."""

REMEDIES = {
    "CANCELLED": "it was cancelled",
    "OUT_OF_MEMORY": "it needs more memory: ask for it with --memory",
    "DEADLINE": "its deadline passed",
    "FAILED": "it ended without a result",
    "COMPLETED": "it ended without a result",
}


@dataclass(frozen=True, kw_only=True)
class JobState:
    """What the cluster says of a job."""

    name: str
    """SLURM's word for its state; GONE if the cluster does not know it any more."""
    reason: str = ""
    """Why it waits."""
    place: str = ""
    """Nodes on which it runs."""

    @property
    def alive(self) -> bool:
        """Whether it waits or runs."""
        return self.name in WAITING + RUNNING

    def __str__(self) -> str:
        """Describe it in a few words."""
        if self.name in WAITING:
            return f"waits ({self.reason or self.name})"
        return f"runs on {self.place}" if self.name in RUNNING else self.name.lower()


GONE = JobState(name="GONE")


def job_states() -> dict[str, JobState] | None:
    """Return the states of this user's jobs by number; None if the cluster does not answer."""
    words = ["squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%r|%N"]
    try:
        done = subprocess.run(  # noqa: S603
            words, capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    found = {}
    for line in done.stdout.splitlines():
        number, _, rest = line.partition("|")
        state, _, rest = rest.partition("|")
        reason, _, place = rest.rpartition("|")
        found[number.strip()] = JobState(name=state, reason=reason.strip(), place=place.strip())
    return found


def exit_code(number: str) -> int | None:
    """Return the exit code of a job that has ended; None if the cluster does not say."""
    words = ["squeue", "--noheader", "--states=all", f"--jobs={number}", "--Format=exit_code"]
    try:
        done = subprocess.run(  # noqa: S603
            words, capture_output=True, text=True, check=False, timeout=60
        )
        return os.waitstatus_to_exitcode(int(done.stdout))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def cancel(number: str) -> None:
    """Cancel a job, unless it has ended already."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603
            ["scancel", number],  # noqa: S607
            capture_output=True,
            check=False,
            timeout=60,
        )
