"""Input and output fail at every call site: the old file stays, nothing half-written is left."""

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.shapes import LEAST

from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.corpus.vocabulary import Vocabulary
from micronet_lm.errors import MicronetError
from micronet_lm.files import write_text

CALLS = [
    *((os, name) for name in ("open", "fsync", "close", "replace", "write")),
    *((Path, name) for name in ("open", "write_bytes", "write_text", "replace", "chmod", "mkdir")),
    (tempfile, "mkstemp"),
]


class Full:
    """Makes the n-th call of any of `CALLS` fail as a full disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        for owner, name in CALLS:
            monkeypatch.setattr(owner, name, self._failing(getattr(owner, name), name))

    def _failing(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def failing(*words: Any, **named: Any) -> Any:
            if self.left == 0 and name != "close":  # a failed close has closed
                self.left = -1
                raise OSError(errno.ENOSPC, "No space left on device", str([*words, name][0]))
            self.left -= self.left > 0
            return call(*words, **named)

        return failing


def packed(path: Path, number: int) -> None:
    write_packed(path, random_model(LEAST, Choice(seed=number)))


def text(path: Path, number: int) -> None:
    write_text(path, f"number {number}\n")


def vocabulary(path: Path, number: int) -> None:
    Vocabulary.from_counts({f"word{number}": 3, "<eos>": 1}).save(path)


@pytest.mark.parametrize("write", [packed, text, vocabulary])
def test_a_failure_anywhere_leaves_the_old_file(
    write: Callable[[Path, int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write(path, 2)
    new = path.read_bytes()
    write(path, 1)
    old, failures = path.read_bytes(), 0
    full = Full(monkeypatch)
    for place in range(100):
        full.left = place
        try:
            write(path, 2)
        except (OSError, MicronetError) as error:
            failures += 1
            assert "\n" not in str(error)
            assert path.read_bytes() in (old, new)
            assert [file.name for file in tmp_path.iterdir()] == ["file"]
            continue
        if full.left >= 0:  # nothing was left to fail
            break
    full.left = -1
    assert failures >= 4
    assert path.read_bytes() != old
    if write is packed:
        read_packed(path)
