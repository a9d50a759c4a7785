"""The small files of a run folder: its recipe and its inputs."""

import os
from pathlib import Path
from typing import Literal

from micronet_lm.config import Recipe, parse_recipe
from micronet_lm.config.strict_yaml import LARGEST_TEXT, read_yaml
from micronet_lm.errors import ConfigError, RunError
from micronet_lm.files import read_json, read_small
from micronet_lm.runs.files import BEST, CORPUS, LAST, RECIPE
from micronet_lm.runs.seal import seal_holds

Which = Literal["best", "last"]
"""Name of one of a run's checkpoints."""


def is_run(path: Path) -> bool:
    """Return whether a folder is a run folder."""
    return (path / RECIPE).is_file()


def check_run(path: Path) -> None:
    """Refuse a folder that is not a run folder."""
    if not is_run(path):
        raise RunError(f"{path} is not a run: it has no {RECIPE} ('micronet train' makes one)")


def checkpoint_file(path: Path, which: Which) -> Path:
    """Return the path of a run's checkpoint; a missing one is refused."""
    file = path / (BEST if which == "best" else LAST)
    if not file.is_file():
        saved = which == "best" and (path / LAST).is_file()
        advice = "take --checkpoint last" if saved else "has the run saved a checkpoint yet?"
        raise RunError(f"{file} does not exist; {advice}")
    return file


def run_recipe(path: Path) -> Recipe:
    """Read a run's resolved recipe."""
    file = path / RECIPE
    try:
        text = read_small(file, LARGEST_TEXT).decode("utf-8")
        recipe = parse_recipe(read_yaml(text), origin="its recipe")
    except (OSError, UnicodeDecodeError, TypeError, ConfigError) as error:
        why = " ".join(str(error).split())
        raise RunError(f"{file} is damaged ({why}); restore it") from None
    if seal_holds(text) is False:
        raise RunError(
            f"{file} was changed after the run wrote it: undo the change, and give other values on "
            "the command line, as in micronet train --resume RUN --train.steps 2000 (to keep the "
            "change all the same, remove the file's last line)"
        )
    return recipe


def run_corpus(path: Path) -> tuple[Path, str]:
    """Return the path and fingerprint of a run's corpus."""
    return run_input(path, CORPUS)


def run_input(path: Path, name: str) -> tuple[Path, str]:
    """Return the path and fingerprint of a run's input."""
    try:
        reference = read_json(path / f"{name}.json")
        return Path(os.path.normpath(path / reference["path"])), str(reference["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}/{name}.json cannot be read ({error}); restore it") from None
