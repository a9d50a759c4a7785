"""Every stage on a device that is not the CPU: no tensor is on the wrong one.

The device is pretended (`tests/support/pretended_gpu.py`), its rules are CUDA's, its numbers real.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.gpu_stages import MISTAKES, STAGES, trained
from tests.support.processes import ENVIRONMENT

from micronet_lm.corpus import Corpus

WITHOUT_MISTAKE = [name for name in STAGES if not name.startswith("mistake")]
COMPARED = "train, cache, Hebbian, streams"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What every stage found on the pretended GPU, in a process of its own."""
    folder = tmp_path_factory.mktemp("stages")
    words = [sys.executable, "-m", "tests.support.gpu_stages", str(folder), "gpu"]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, done.stderr
    return {line["stage"]: line for line in lines}


@pytest.mark.parametrize("stage", WITHOUT_MISTAKE)
def test_it_runs_on_the_device(told: dict[str, dict[str, Any]], stage: str) -> None:
    assert "failed" not in told[stage], told[stage]["failed"]
    assert told[stage]["launched"] > 0


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(told: dict[str, dict[str, Any]], name: str) -> None:
    failed = told[f"mistake: {name}"].get("failed", "nothing failed")
    assert "NCCL: all_gather" in failed or "to be on the same device" in failed


def test_the_device_refuses_what_cuda_refuses(told: dict[str, dict[str, Any]]) -> None:
    rules = told["rules"]
    assert list(rules["refused"]) == rules["of"]
    assert rules["computed"] == 24


def test_models_of_runs_are_on_the_device(told: dict[str, dict[str, Any]]) -> None:
    assert told["evaluate"]["device"] == "gpu:0"
    assert told["exchange"]["exchanged"].keys() == {"all_gather", "all_reduce", "broadcast"}


@pytest.mark.parametrize("work", ["reading", "training"])
def test_a_plan_measures_the_device_and_waits_for_it(
    told: dict[str, dict[str, Any]], work: str
) -> None:
    assert told[f"speed of {work}"]["waited for"] == ["gpu:0"]


def test_it_computes_what_the_cpu_computes(
    told: dict[str, dict[str, Any]], tmp_path: Path, corpus: Corpus
) -> None:
    here = trained(COMPARED)(tmp_path, corpus)
    assert told[COMPARED]["loss"] == pytest.approx(here["loss"], rel=1e-4)
