"""Verbs of the command line, called in this process by tests that need what they make."""

import json
from pathlib import Path
from typing import Any

import pytest

from micronet_lm.cli.main import main
from micronet_lm.corpus import Corpus


def train_demo(out: Path, corpus: Corpus, words: list[str]) -> Path:
    """Train preset `demo`, as words change it, on a corpus; skip where torch is not installed."""
    pytest.importorskip("torch", reason="torch is not installed")
    assert main(["train", "demo", "--out", str(out), "--corpus", str(corpus.path), *words]) == 0
    return out


def run_recipe(recipe: Path, out: Path) -> Path:
    """Run a recipe's whole pipeline without any interruption."""
    pytest.importorskip("torch", reason="torch is not installed")
    assert main(["run", str(recipe), "--out", str(out), "--json"]) == 0
    return out


def report(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Call a verb; return the one JSON object that it printed."""
    capsys.readouterr()
    assert main(words) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found
