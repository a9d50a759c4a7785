"""One stage as a job of submitit: it saves when it is told to stop, and resumes when requeued."""

import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from micronet_lm.errors import MicronetError
from micronet_lm.pipeline.child import do_in_child
from micronet_lm.pipeline.runner import FULL_DISK, perform, prepare
from micronet_lm.pipeline.stage import Interrupted, Stage
from micronet_lm.pipeline.together import outcome_file, read_outcome, start_processes
from micronet_lm.pipeline.workspace import Workspace

STOPPED = 143
"""Exit code of a job that was told to stop: as after SIGTERM."""

FULL = 28
"""Exit code of a job that cannot even write its result: the number of 'no space left'."""

LOST = "a process was lost"
"""What the result of a job begins with whose stage may resume in another job."""

FOLDER_SECONDS = 10.0
"""How long a file may take to appear that another node has written in a network folder."""

RESULT_BYTES = 64 << 10
"""Room for the result and the log of a job."""

SAVING_SECONDS = 75.0
"""How long a stage may take to save after a warning, of the 90 seconds that the cluster gives."""


class StageJob:
    """The work of a job; calling it does the stage and returns the message of an expected error."""

    def __init__(
        self, workspace: Workspace, stage: Stage, threads: int, nodes: int = 1, processes: int = 1
    ) -> None:
        self.workspace, self.stage, self.threads = workspace, stage, threads
        self.nodes = nodes
        """Nodes of the job; this is called on each of them."""
        self.processes = processes
        """Processes that work on the stage on each node, under torchrun if there are several."""

    def __call__(self) -> str | None:
        """Do the stage."""
        if self.nodes * self.processes > 1:
            return self._together()

        import torch

        torch.set_num_threads(self.threads)
        try:
            prepare([self.stage])
            do_in_child(partial(perform, self.workspace, self.stage), self.stage)
        except MicronetError as error:
            return self._told(str(error))
        except Interrupted:
            # All is saved. No result is left behind: the cluster knows whether the job was
            # cancelled, or runs again after a preemption.
            os._exit(STOPPED)
        return None

    def checkpoint(self) -> Any:
        """Save, before submitit puts the job back into the queue: a time limit, or a preemption."""
        from submitit.helpers import DelayedSubmission

        _stop_children(under_torchrun=self.nodes * self.processes > 1)
        return DelayedSubmission(
            StageJob(self.workspace, self.stage, self.threads, self.nodes, self.processes)
        )

    def _together(self) -> str | None:
        """Do this node's part of the stage; only the first node's job has a result."""
        from submitit import JobEnvironment

        first, file = JobEnvironment().global_rank == 0, outcome_file()
        if first:
            file.unlink(missing_ok=True)  # of a start before this one
        told: list[int] = []
        before = signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
        code = start_processes(self.nodes, self.processes, self.threads)
        signal.signal(signal.SIGTERM, before)
        if not first:
            return None
        end = time.monotonic() + FOLDER_SECONDS
        while (outcome := read_outcome(file)) is None and time.monotonic() < end:
            time.sleep(0.2)  # the first process may have been on another node
        if told or (outcome and "interrupted" in outcome):
            os._exit(STOPPED)
        if outcome is None or "lost" in outcome:
            why = (outcome or {}).get("lost", f"torchrun ended with code {code}")
            return f"{LOST}: {why}"
        error: str | None = outcome.get("error")
        return error and self._told(error)

    def _told(self, error: str) -> str:
        """Return an error as the job's result; on a full disk the exit code must say it."""
        if not has_room(self.workspace.root):
            sys.stderr.write(f"{error}\n")
            os._exit(FULL)
        return error


def has_room(folder: Path) -> bool:
    """Return whether a job's result can still be written in a folder."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(RESULT_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno not in FULL_DISK
    return True


def _stop_children(*, under_torchrun: bool) -> None:
    """Ask this process's children to save and end, and wait until they have.

    Torchrun would give its processes 30 seconds only, so they are asked instead of it.
    """
    end = time.monotonic() + SAVING_SECONDS
    asked: set[int] = set()
    while (running := _children(os.getpid())) and time.monotonic() < end:
        if under_torchrun:
            running = {own for child in running for own in _children(child)}
        for child in running - asked:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        asked |= running
        time.sleep(0.1)


def _children(parent: int) -> set[int]:
    """Return the running children of a process."""
    found = set()
    for task in Path(f"/proc/{parent}/task").iterdir():
        with suppress(OSError):
            found |= {int(word) for word in (task / "children").read_text("ascii").split()}
    return {child for child in found if not _is_dead(child)}


def _is_dead(child: int) -> bool:
    try:
        stat = Path(f"/proc/{child}/stat").read_text("ascii", errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
