"""How much one training step of the paper's student asks of a GPU."""

import json
import subprocess
import sys

import pytest
from tests.support.processes import ENVIRONMENT

MOST, MOST_CALLS = 7_034 // 10, 17_150 // 10
"""Launches and calls that a step may have: a tenth of those in a processor's pieces at batch 14,
when they were first counted. 697 and 1,704 are left of 7,002 and 17,071 now."""


@pytest.mark.needs_torch
def test_a_step_launches_few_operations() -> None:
    words = [sys.executable, "-m", "tests.support.gpu_counts", "paper/student-hebbian", "gpu-sizes"]
    words += ["cache.size=2000", "train.batch=2"]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["launched"] <= MOST, told
    assert told["called"] <= MOST_CALLS, told
    assert sum(told["waited"].values()) <= 20, told
    # The next step's inputs and targets, from pinned memory and without waiting; nothing else.
    assert told["copies"] == [[True, True]] * 2
