"""docs/first-hour.md from top to bottom in one folder, with less training; and the examples."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.support.pages import assert_prints, blocks, console

from micronet_lm.corpus import build_corpus

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "first-hour.md").read_text(encoding="utf-8")


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.needs_torch
def test_the_page_from_top_to_bottom(tmp_path: Path) -> None:
    corpus = build_corpus("python-docs", tmp_path / "corpus")
    text = corpus.decode(corpus.split("valid")[:12_000])
    (tmp_path / "mytext.txt").write_text(text, encoding="utf-8")
    for command, lines in console(PAGE):
        done = run(command.replace("--minutes 10", "--minutes 1 --train.steps 30"), tmp_path)
        assert done.returncode == 0, done.stderr
        assert_prints(done.stdout.rstrip("\n").splitlines(), lines)
        if " -m " not in command and command.startswith("micronet predict"):
            assert "model: demo/shipped" in done.stderr
    (python,) = blocks("python", PAGE)
    script = tmp_path / "page.py"
    script.write_text(python, encoding="utf-8")
    done = run(f"{sys.executable} page.py", tmp_path)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert told[0].startswith("suggestions: ")
    assert all(word[0] in "tT" for word in told[0].split()[1:])
    assert told[-1].endswith("first the")
    assert (tmp_path / "mine" / "report" / "report.html").is_file()


def example(name: str, *words: str, folder: Path = ROOT) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_keyboard_saves_keys() -> None:
    lines = example("keyboard.py", "Return a new list of the files")
    assert lines[-1].endswith("% saved")
    assert int(lines[-1].split()[0]) < 31


def test_the_filter_drops_garbage(tmp_path: Path) -> None:
    text = tmp_path / "lines.txt"
    text.write_text("Return a new list.\nxq zvb kkw pfft\nlist new a Return file the.\n", "utf-8")
    kept = example("perplexity_filter.py", str(text), "--perplexity", "60")
    assert kept == ["Return a new list."]


def test_rescoring_finds_the_sentence() -> None:
    assert example("rescoring.py")[0].endswith("Return a new list of the files in the directory.")


@pytest.mark.needs_torch
def test_a_mistyped_text_is_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "your_text.py"), "mytxt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no file or folder of that name" in done.stderr


def test_every_example_is_in_the_table() -> None:
    table = (ROOT / "examples" / "README.md").read_text("utf-8")
    programs = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
    assert len(programs) == 4
    assert all(f"examples/{name}" in table for name in programs)
