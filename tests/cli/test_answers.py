"""Answers of packed models: which model gave them, and how their cost grows."""

import shutil
import sys
from pathlib import Path
from types import FrameType

import pytest

from micronet_lm.cli.main import main
from micronet_lm.runtime.places import shipped_model


def test_a_file_that_lies_in_the_working_directory_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["predict", "a"]) == 0
    assert "(ships with the package: -m demo)\n" in capsys.readouterr().err
    shutil.copy(shipped_model("demo"), "model.safetensors")
    for words, named in (([], "model.safetensors"), (["-m", "demo"], "ships with the package")):
        for verb in ("predict", "generate"):
            assert main([verb, "a", *words]) == 0
            assert f"({named}" in capsys.readouterr().err


def test_the_work_of_writing_grows_with_the_text_and_not_with_its_square(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Calls are counted, of Python's and of C's functions: 8,000 words once took 17 seconds."""

    def calls(tokens: int) -> int:
        count = 0

        def called(frame: FrameType, event: str, argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(called)
        try:
            assert main(["generate", "Return", "-n", str(tokens)]) == 0
        finally:
            sys.setprofile(None)
        capsys.readouterr()
        return count

    calls(1)  # what is imported and opened once
    begin, few, many = calls(1), calls(101), calls(401)
    assert (many - begin) / (few - begin) == pytest.approx(4, rel=0.15)
