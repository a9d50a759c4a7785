"""docs/running.md says what works: its Python is run, its verbs exist."""

import re
from pathlib import Path

import pytest
from tests.support.engines import CACHED, ENGINES
from tests.support.shapes import SMALL

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import random_model
from micronet_lm.cli.main import main
from micronet_lm.runtime import engines

PAGE = (Path(__file__).parents[2] / "docs" / "running.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings(
    "ignore::micronet_lm.UnknownWordsWarning"
)  # a random model knows no cat
@pytest.mark.parametrize("engine", ENGINES)
def test_the_python_runs(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engines, "has_native", lambda: engine == "native")
    write_packed(Path("model.safetensors"), random_model(SMALL, CACHED))
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "running.md", "exec"), names)  # noqa: S102
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "random 90"
    assert float(lines[1]) > 1
    assert lines[2].startswith("<unk> -")  # no cat is in this vocabulary
    assert "Candidate(word='a" in lines[12]
    assert lines[-1].split()[0] == "3"


def test_the_verbs_exist(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in re.findall(r"^\| `micronet ([a-z]+) ", PAGE, flags=re.MULTILINE):
        with pytest.raises(SystemExit) as stopped:
            main([verb, "--help"])
        assert stopped.value.code == 0
        capsys.readouterr()
