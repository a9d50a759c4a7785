"""Facts of the machine that do not depend on which machine it is."""

import os
import signal
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, settings

from micronet_lm.machine import signal_name


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (signal.SIGKILL, "SIGKILL"),
        (11, "SIGSEGV"),
        (signal.SIGRTMIN, "SIGRTMIN"),
        (signal.SIGRTMIN + 3, f"signal {signal.SIGRTMIN + 3}"),
    ],
)
def test_every_signal_has_a_name(number: int, name: str) -> None:
    assert signal_name(number) == name


LOOK = "from micronet_lm.cli.main import main; main(['presets', '--json']); import torch"


@pytest.mark.needs_torch
@pytest.mark.parametrize(
    ("chosen", "spins"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "77"}, "77"), ({"OMP_WAIT_POLICY": "active"}, "300")],
)
def test_threads_that_wait_sleep_soon(chosen: dict[str, str], spins: str) -> None:
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    environment = ours | {"OMP_DISPLAY_ENV": "verbose"} | chosen
    done = subprocess.run(
        [sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True, check=True
    )
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip("this torch does not use GNU's OpenMP")
    assert f"GOMP_SPINCOUNT = '{spins}" in done.stderr


def test_no_property_test_depends_on_the_clock() -> None:
    assert settings.default is not None
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check
