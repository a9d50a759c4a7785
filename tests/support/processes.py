"""`micronet` in real processes: one, or two that train together."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.recipes import TINY, as_words

from micronet_lm.corpus import Corpus

ONE = [sys.executable, "-m", "micronet_lm"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
"""Runs the script or the module (`-m`) that follows in two processes."""

TWO = [*TORCHRUN, "-m", "micronet_lm"]
CACHE = ["--cache.size", "60"]
ROOT = str(Path(__file__).parents[2])
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]),
}
"""For child processes, whose scripts may import from `tests.support`."""


def train_command(out: Path, corpus: Corpus, *more: str, program: list[str] = ONE) -> list[str]:
    """Return the command that trains the tiny recipe."""
    words = ["train", "demo", "--out", str(out), "--corpus", str(corpus.path)]
    return [*program, *words, *as_words(TINY), *more]


def finish(words: list[str], patience: float = 200) -> None:
    """Run a command to its end, which must be a good one."""
    done = subprocess.run(
        words, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=patience
    )
    assert done.returncode == 0, done.stderr
