"""Which kernels the engine takes: by name, by the variable MICRONET_KERNELS, or the fastest."""

import os
import subprocess
import sys

import pytest

from micronet_lm.errors import InferenceError
from micronet_lm.runtime.native import NativeEngine, kernel_sets
from micronet_lm.runtime.places import shipped_model

VARIABLE = "MICRONET_KERNELS"
NAMES = ["scalar", "avx2", "avx512"]
RUNNING = [kernels.name for kernels in kernel_sets() if kernels.runs]
SCRIPT = """
import sys
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.places import shipped_model
from micronet_lm.runtime.native import NativeEngine, kernel_sets
try:
    print(NativeEngine(shipped_model(), kernels=sys.argv[1]).kernels)
except InferenceError as error:
    print(error)
print(*(kernels.name for kernels in kernel_sets() if kernels.chosen))
"""


def ask(variable: str | None, kernels: str = "auto") -> list[str]:
    """The kernels in use or the error, and those that `auto` takes, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if variable is not None:
        environment[VARIABLE] = variable
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, kernels],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_all_sets_are_listed_and_one_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    sets = kernel_sets()
    assert [kernels.name for kernels in sets] == NAMES
    assert sets[0].built and sets[0].runs
    assert all(kernels.built for kernels in sets if kernels.runs)
    assert [kernels.name for kernels in sets if kernels.chosen] == RUNNING[-1:]
    assert NativeEngine(shipped_model()).kernels == RUNNING[-1]


@pytest.mark.parametrize("variable", [None, "", "auto"])
def test_without_the_variable_the_fastest_are_taken(variable: str | None) -> None:
    assert ask(variable) == [RUNNING[-1], RUNNING[-1]]


@pytest.mark.parametrize("variable", RUNNING)
def test_the_variable_names_what_auto_takes(variable: str) -> None:
    assert ask(variable) == [variable, variable]


def test_a_name_in_the_call_goes_before_the_variable() -> None:
    for variable in (*RUNNING, "mmx"):
        assert ask(variable, kernels="scalar")[0] == "scalar"


def test_the_variable_is_named_where_there_are_no_such_kernels() -> None:
    assert ask("mmx") == [
        "there are no kernels 'mmx', which MICRONET_KERNELS asks for; "
        "choose auto, scalar, avx2 or avx512",
        "",
    ]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in RUNNING])
def test_kernels_that_do_not_run_here_are_refused(name: str) -> None:
    with pytest.raises(InferenceError, match=f"no {name} kernels; choose auto"):
        NativeEngine(shipped_model(), kernels=name)
    assert f"no {name} kernels, which MICRONET_KERNELS asks for; choose auto" in ask(name)[0]
