"""One stage on several nodes or GPUs: `srun` starts this on each node, and it starts torchrun.

The first process of all does what `perform` does; the others share its work. How it ended is left
in a small file, from which the job of the first node makes its result.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micronet_lm.errors import MicronetError
from micronet_lm.files import read_json, write_text
from micronet_lm.pipeline.runner import perform, prepare
from micronet_lm.pipeline.stage import Interrupted
from micronet_lm.training.processes import LostProcessError, Processes, joined_processes

if TYPE_CHECKING:
    from micronet_lm.pipeline.jobs import StageJob

FIRST_PORT, PORTS = 20_000, 10_000
"""Ports at which processes meet: each job has its own, for several may have the same node."""

SAVING = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that a cluster sends to all processes of a job; torchrun would die of them."""


def start_processes(nodes: int, each: int, threads: int) -> int:
    """Start this node's processes for the job's stage, and wait for them; return their exit code.

    Where they meet and what they do is in the environment that SLURM and submitit give.
    """
    from submitit import JobEnvironment

    here = JobEnvironment()
    port = FIRST_PORT + int(here.raw_job_id) % PORTS
    words = [sys.executable, "-m", "torch.distributed.run"]
    words += [f"--nnodes={nodes}", f"--nproc-per-node={each}", "--rdzv-backend=c10d"]
    words += [f"--rdzv-endpoint={here.hostnames[0]}:{port}", f"--rdzv-id={here.raw_job_id}"]
    words += ["-m", "micronet_lm.pipeline.together"]
    words += [str(here.paths.submitted_pickle), str(outcome_file())]
    with subprocess.Popen(  # noqa: S603
        words,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        preexec_fn=_ignore_saving,
    ) as started:
        return started.wait()


def outcome_file() -> Path:
    """Return where the first process says how it ended."""
    from submitit import JobEnvironment

    here = JobEnvironment()
    return Path(here.paths.folder) / f"{here.job_id}_outcome.json"


def read_outcome(file: Path) -> dict[str, Any] | None:
    """Return how the first process ended; None if it could not say so."""
    with suppress(OSError, ValueError):
        found = read_json(file)
        return found if isinstance(found, dict) else None
    return None


def _ignore_saving() -> None:
    """Ignore the signals that ask to save; a training installs its own handlers for them."""
    for number in SAVING:
        signal.signal(number, signal.SIG_IGN)


def main(submitted: Path, outcome: Path) -> int:
    """Do the stage of a submitted job as one of its processes."""
    import torch
    from submitit.core.utils import DelayedSubmission

    job: Any = DelayedSubmission.load(submitted).function  # a `StageJob`
    torch.set_num_threads(job.threads)
    prepare([job.stage])
    told: dict[str, Any] = {}
    try:
        with joined_processes() as processes:
            _take_part(job, processes)
    except Interrupted:
        told = {"interrupted": True}
    except LostProcessError as error:
        told = {"lost": str(error)}
    except MicronetError as error:
        told = {"error": str(error)}
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"}
        raise
    finally:
        if os.environ.get("RANK", "0") == "0":
            write_text(outcome, json.dumps(told) + "\n")
    for name in ("lost", "error"):
        if name in told:
            sys.stderr.write(f"{told[name]}\n")
            return 1
    return 0


def _take_part(job: "StageJob", processes: Processes) -> None:
    """Do the leader's part of the stage, or that of another process, once the leader is ready."""
    workspace, stage = job.workspace, job.stage

    def ready(here: Path, inputs: Any) -> dict[str, Any]:
        processes.wait()  # the leader has prepared the stage's folder
        return stage.work(here, inputs)

    if processes.leads:
        perform(workspace, replace(stage, work=ready))
        return
    processes.wait()
    inputs = {role: workspace.product(needed) for role, needed in stage.needs.items()}
    stage.work(workspace.folder(stage), inputs)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
