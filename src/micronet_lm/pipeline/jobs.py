"""One stage as a job of submitit: it saves when it is told to stop, and resumes when requeued."""

import os
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from micronet_lm.errors import MicronetError
from micronet_lm.pipeline.child import do_in_child
from micronet_lm.pipeline.runner import perform, prepare
from micronet_lm.pipeline.stage import Interrupted, Stage
from micronet_lm.pipeline.workspace import Workspace

STOPPED = 143
"""Exit code of a job that was told to stop: as after SIGTERM."""

SAVING_SECONDS = 75.0
"""How long a stage may take to save after a warning, of the 90 seconds that the cluster gives."""


class StageJob:
    """The work of a job; calling it does the stage and returns the message of an expected error."""

    def __init__(self, workspace: Workspace, stage: Stage, threads: int) -> None:
        self.workspace, self.stage, self.threads = workspace, stage, threads

    def __call__(self) -> str | None:
        """Do the stage."""
        import torch

        torch.set_num_threads(self.threads)
        try:
            prepare([self.stage])
            do_in_child(partial(perform, self.workspace, self.stage), self.stage)
        except MicronetError as error:
            return str(error)
        except Interrupted:
            # All is saved. No result is left behind: the cluster knows whether the job was
            # cancelled, or runs again after a preemption.
            os._exit(STOPPED)
        return None

    def checkpoint(self) -> Any:
        """Save, before submitit puts the job back into the queue: a time limit, or a preemption."""
        from submitit.helpers import DelayedSubmission

        _stop_children()
        return DelayedSubmission(StageJob(self.workspace, self.stage, self.threads))


def _stop_children() -> None:
    """Ask this process's children to save and end, and wait until they have."""
    end = time.monotonic() + SAVING_SECONDS
    asked: set[int] = set()
    while (running := _children()) and time.monotonic() < end:
        for child in running - asked:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        asked |= running
        time.sleep(0.1)


def _children() -> set[int]:
    """Return the running children of this process."""
    found = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with suppress(OSError):
            found |= {int(word) for word in (task / "children").read_text("ascii").split()}
    return {child for child in found if not _is_dead(child)}


def _is_dead(child: int) -> bool:
    try:
        stat = Path(f"/proc/{child}/stat").read_text("ascii", errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
