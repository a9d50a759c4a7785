"""A stage: what it is made of, what it depends on, and the work itself."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

FORMAT = 1
"""Raised when a stage's work changes so that what older versions made must be made again."""


@dataclass(frozen=True, kw_only=True)
class Product:
    """What a finished stage has left."""

    path: Path
    """Its folder."""

    result: Mapping[str, Any]
    """Its numbers."""


Work = Callable[[Path, Mapping[str, Product]], dict[str, Any]]
"""Does a stage's work in its folder, from its inputs' products; returns its numbers.

It goes on with what an interrupted call has left in the folder. Raises `Interrupted` when somebody
asked to stop.
"""


class Interrupted(Exception):  # noqa: N818 (not an error: what was asked for)
    """Somebody asked to stop, and everything is saved."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step on the way from text to a packed model."""

    name: str
    """What users call it."""

    folder: str
    """Name of its folder."""

    settings: Mapping[str, Any]
    """The part of the recipe that it depends on, as plain values."""

    needs: Mapping[str, "Stage"] = field(default_factory=dict)
    """Its inputs, by what they are to it."""

    work: Work = field(compare=False, repr=False)
    """What it does."""

    keys: str = ""
    """What leads the keys of its recipe on the command line: `teacher.` for the teacher's."""

    fresh: bool = False
    """Whether the work begins anew after an interruption, in an empty folder."""

    @cached_property
    def fingerprint(self) -> str:
        """One hash of all that decides what this stage gives."""
        inputs = {role: stage.fingerprint for role, stage in sorted(self.needs.items())}
        whole = {"format": FORMAT, "stage": self.name, "settings": self.settings, "needs": inputs}
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def in_order(stages: Iterable[Stage]) -> list[Stage]:
    """List stages with all that they need, each once and after its inputs."""
    found: dict[str, Stage] = {}

    def visit(stage: Stage) -> None:
        for needed in stage.needs.values():
            visit(needed)
        found.setdefault(stage.fingerprint, stage)

    for stage in stages:
        visit(stage)
    return list(found.values())
