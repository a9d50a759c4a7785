"""The models of a server, by name; changed files are opened again without dropping a request."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from micronet_lm.accounting import PAPER, challenge, count
from micronet_lm.accounting.rows import Account
from micronet_lm.accounting.summary import grouped, number
from micronet_lm.artifact import open_packed
from micronet_lm.artifact.anatomy import describe_model, file_bytes
from micronet_lm.artifact.counted_target import packed_target
from micronet_lm.errors import MicronetError, UsageError
from micronet_lm.runs.files import PACKED
from micronet_lm.runtime.engines import Name
from micronet_lm.runtime.model import LM, load
from micronet_lm.runtime.places import file_to_open, shipped_models
from micronet_lm.serve.refusals import NotFound

Stamp = tuple[int, int, int]
"""What tells that a file was replaced: inode, size and time."""


@dataclass(frozen=True, eq=False)
class Opened:
    """A model that is ready to answer; a request keeps its own when a newer one replaces it."""

    name: str
    path: Path
    lm: LM
    stamp: Stamp
    created: int = field(default_factory=lambda: int(time.time()))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def description(self) -> dict[str, Any]:
        """What the file holds and what it costs."""
        with self._lock:
            return self._description

    @cached_property
    def _description(self) -> dict[str, Any]:
        packed = open_packed(self.path)
        try:
            target = packed_target(self.path, None, None)
            accounts = {
                rules.name: _counted(count(target, rules)) for rules in (PAPER, challenge())
            }
        except MicronetError:  # a card without the shares of its bins: the costs are not known
            accounts = {}
        return {
            "name": self.name,
            "engine": self.lm.engine.name,
            "file": file_bytes(packed.container),
            **describe_model(packed.model),
            "accounting": accounts,
        }


class Shelf:
    """Models by name; the first is the default."""

    def __init__(self, places: Mapping[str, Path], engine: Name = "auto") -> None:
        self._places, self._engine = dict(places), engine
        self._models = {name: self._open(name, path) for name, path in self._places.items()}

    @property
    def models(self) -> list[Opened]:
        """All models, the default first."""
        return list(self._models.values())

    def get(self, name: str | None = None) -> Opened:
        """Return a model; the default where none is named."""
        if name is None:
            return self.models[0]
        if name not in self._models:
            known = ", ".join(self._models)
            raise NotFound(f"there is no model {name[:100]!r} here: choose one of {known}")
        return self._models[name]

    def reopen(self) -> list[tuple[str, str | None]]:
        """Open changed files; return the names of the models, each with what went wrong."""
        told: list[tuple[str, str | None]] = []
        for name, path in self._places.items():
            try:
                if stamp_of(path) != self._models[name].stamp:
                    self._models[name] = self._open(name, path)
                    told.append((name, None))
            except (MicronetError, OSError) as error:
                told.append((name, str(error)))  # the old one keeps answering
        return told

    def _open(self, name: str, path: Path) -> Opened:
        lm = load(path, self._engine)
        return Opened(name, path, lm, stamp_of(path))


def named_places(models: Sequence[str], default: Callable[[], Path]) -> dict[str, Path]:
    """Return the packed files that a command line names: `NAME=PATH`, a path, or a shipped name."""
    places: dict[str, Path] = {}
    for word in models or [str(default())]:
        name, is_named, rest = word.partition("=")
        if not is_named or "/" in name:
            name, rest = "", word
        path = file_to_open(rest)
        if not name:
            name = rest if rest in shipped_models() and not Path(rest).exists() else _name_of(path)
        if name in places:
            raise UsageError(
                f"two models have the name {name!r}: give them names, NAME={places[name]} and "
                f"OTHER={path}"
            )
        places[name] = path
    return places


def stamp_of(path: Path) -> Stamp:
    """Return what changes when a file is replaced."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _name_of(path: Path) -> str:
    """Return a file's name without its end; that of its folder for a file of a run."""
    if path.name != PACKED:
        return path.stem
    folder = path.absolute().parent
    return (folder.parent if folder.name == "packed" else folder).name or path.stem


def _counted(account: Account) -> dict[str, Any]:
    """Return an account with its layers, as plain values."""
    layers = [
        {
            "name": group.name,
            "storage": number(group.storage),
            "operations": number(group.operations),
        }
        for group in grouped(account.rows, "part")
    ]
    return {
        "storage": number(account.storage),
        "operations": number(account.operations),
        "score": float(account.score),
        "layers": layers,
    }
