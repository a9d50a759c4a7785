"""`micronet doctor`: what works here on one page, exit 1 and a sentence where something fails."""

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

import micronet_lm
from micronet_lm import diagnosis
from micronet_lm.cli.main import main
from micronet_lm.diagnosis import described, diagnose
from micronet_lm.runtime.engines import has_native
from micronet_lm.runtime.native import kernel_sets
from micronet_lm.runtime.self_test import KernelCheck

needs_native = pytest.mark.skipif(not has_native(), reason="the native engine is not built")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_it_tells_what_is_here(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["problems"] == []
    assert found["version"] == micronet_lm.__version__
    assert found["processor"]["cores"] >= 1
    assert found["extras"]["base"]["numpy"]
    assert found["places"]["measurements"] == str(tmp_path / "cache" / "micronet-lm")
    kernels = {row["name"]: row for row in found["engine"]["kernels"]}
    assert set(kernels) == {row.name for row in kernel_sets()}
    assert all(row["check"]["ok"] for row in kernels.values() if row["runs"])
    assert sum(row["chosen"] for row in kernels.values()) == bool(kernels)
    if find_spec("torch"):
        import torch

        assert found["torch"]["version"] == torch.__version__
        assert Path(found["torch"]["kept_in"]).is_file()  # the verdict is kept
        assert found["torch"]["trials"][0]["isa"] is None
    else:
        assert found["torch"] is None
    # The page has the same facts, a line each.
    lines = dict(described(found))
    assert lines["micronet-lm"] == micronet_lm.__version__
    assert lines["processor"].startswith(found["processor"]["name"])
    assert ("training in" in lines) == (found["torch"] is not None)


def test_without_torch_and_engine_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "find_spec", lambda name: None)
    monkeypatch.setattr(diagnosis, "has_native", lambda: False)
    monkeypatch.setattr(diagnosis, "check_kernels", list)
    monkeypatch.setattr(diagnosis, "kernel_sets", tuple)
    found = diagnose()
    assert found["problems"] == []
    lines = dict(described(found))
    assert lines["torch"] == (
        "not installed; training needs it: pip install -c constraints.txt '.[train]' in a clone of "
        "micronet-lm"
    )
    assert lines["engine"].startswith("NumPy (slow: ")


@needs_native
def test_broken_kernels_are_one_sentence_and_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = KernelCheck(name="scalar", ok=False, detail="ended by SIGILL", seconds=0.1)
    monkeypatch.setattr(diagnosis, "check_kernels", lambda: [bad])
    monkeypatch.setattr(diagnosis, "find_spec", lambda name: None)
    assert main(["doctor"]) == 1
    shown = capsys.readouterr()
    assert shown.err == "micronet: the engine's scalar kernels are broken: ended by SIGILL\n"
    assert "BROKEN: ended by SIGILL" in shown.out


@pytest.mark.needs_torch
def test_torch_that_dies_is_one_sentence_and_exit_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For real: importing torch ends the child, not the doctor."""
    monkeypatch.setattr(diagnosis, "check_kernels", list)
    root = Path(__file__).parents[2]
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "def spoil(event, arguments):\n"
        "    if event == 'import' and arguments[0] == 'torch':\n"
        f"        sys.path.insert(0, {str(root)!r})\n"
        "        from tests.support.illegal import execute_illegal_instruction\n"
        "        execute_illegal_instruction()\n"
        "sys.addaudithook(spoil)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["doctor", "--json"]) == 1
    shown = capsys.readouterr()
    assert shown.err == "micronet: torch does not work here: SIGILL\n"
    assert json.loads(shown.out)["torch"] == {"broken": "torch does not work here: SIGILL"}


@pytest.mark.needs_torch
def test_products_are_measured_again_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "check_kernels", list)
    file = Path(diagnose()["torch"]["kept_in"])
    before = file.stat().st_mtime_ns
    assert Path(diagnose()["torch"]["kept_in"]) == file
    assert file.stat().st_mtime_ns == before
    diagnose(again=True)
    assert file.stat().st_mtime_ns > before


def test_a_missing_requirement_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda name: ["numpy>=2", "nowhere>=1"])
    problems: list[str] = []
    assert diagnosis._extras(problems)["base"]["nowhere"] is None
    assert problems == ["nowhere is missing: pip install nowhere"]


def test_requirements_of_other_pythons_are_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    later = "nowhere>=1; python_version >= '3.99' and extra == 'test'"
    always = "nothing>=1; python_version >= '3.11' and extra == 'test'"
    monkeypatch.setattr("importlib.metadata.requires", lambda name: [later, always])
    assert diagnosis._extras([])["test"] == {"nothing": None}


@pytest.mark.needs_torch
@pytest.mark.parametrize(("wait", "remark"), [(1.0, ""), (6.0, "6 processes share each core")])
def test_a_busy_machine_is_not_called_broken(
    wait: float, remark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def hang(words: list[str], *, timeout: float, **others: object) -> None:
        limits.append(timeout)
        raise subprocess.TimeoutExpired(words, timeout)

    monkeypatch.setattr(diagnosis, "busyness", lambda: wait)
    monkeypatch.setattr("subprocess.run", hang)
    problems: list[str] = []
    diagnosis._torch(problems, again=False)
    assert limits == [diagnosis.TORCH_SECONDS * wait]
    assert problems[0].startswith(f"torch gave no answer within {limits[0]:.0f} s")
    assert remark in problems[0]
