"""A stage: its settings, its inputs, and its work."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from micronet_lm.config import JobConfig

FORMAT = 1
"""Version of the stages' work; results of other versions are made again."""


@dataclass(frozen=True, kw_only=True)
class Product:
    """The result of a complete stage."""

    path: Path
    """Its folder."""

    result: Mapping[str, Any]
    """Its numbers."""


Work = Callable[[Path, Mapping[str, Product]], dict[str, Any]]
"""Function that does a stage's work in its folder, from its inputs' products; returns its numbers.

It resumes from what an interrupted call left in the folder. It raises `Interrupted` when asked to
stop.
"""


class Interrupted(Exception):  # noqa: N818 (not an error: a requested stop)
    """A requested stop, after everything was saved."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One part of the way from text to a packed model."""

    name: str
    """Name for users."""

    folder: str
    """Name of its folder."""

    settings: Mapping[str, Any]
    """The part of the recipe that it depends on, as plain values."""

    needs: Mapping[str, "Stage"] = field(default_factory=dict)
    """Its inputs, by role."""

    work: Work = field(compare=False, repr=False)
    """Its work."""

    keys: str = ""
    """What leads the keys of its recipe on the command line: `teacher.` for the teacher's."""

    fresh: bool = False
    """Whether the work starts again in an empty folder after an interruption."""

    job: JobConfig | None = field(default=None, compare=False)
    """What the recipe says that its job asks of a cluster; it changes no result."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that this stage's result depends on."""
        inputs = {role: stage.fingerprint for role, stage in sorted(self.needs.items())}
        whole = {"format": FORMAT, "stage": self.name, "settings": self.settings, "needs": inputs}
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def in_order(stages: Iterable[Stage]) -> list[Stage]:
    """Return stages with all that they need, each once and after its inputs."""
    found: dict[str, Stage] = {}

    def visit(stage: Stage) -> None:
        for needed in stage.needs.values():
            visit(needed)
        found.setdefault(stage.fingerprint, stage)

    for stage in stages:
        visit(stage)
    return list(found.values())
