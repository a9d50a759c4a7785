"""Saved sessions on disk: one file each, in a folder that only its owner can read."""

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from micronet_lm.errors import MicronetError
from micronet_lm.files import make_folder, open_regular, replacing
from micronet_lm.strict_json import parse_json

_NAME = re.compile(r"[A-Za-z0-9_-]{22}\.session")
_MAGIC = "micronet session 1"


class DamagedSessionError(MicronetError):
    """A file that is not a saved session."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """What a file says of its session besides the state."""

    model: str
    created: int
    tokens: int


class SessionFiles:
    """The folder. Files are found by listing it: no path is made of what a client sends."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        folder.chmod(0o700)
        self._folder = folder
        self._seen: dict[str, float] = {
            file.stem: file.stat().st_mtime
            for file in folder.iterdir()
            if _NAME.fullmatch(file.name) and file.is_file()
        }

    def __contains__(self, name: str) -> bool:
        return name in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def write(self, name: str, about: Saved, state: bytes) -> None:
        """Write a session; a kill at any moment leaves the old file or the new one."""
        head = json.dumps({"micronet": _MAGIC, **vars(about)}).encode()
        with replacing(self._path(name), mode=0o600) as temporary:
            temporary.write_bytes(head + b"\n" + state)
        self._seen[name] = time.time()

    def read(self, name: str) -> tuple[Saved, bytes]:
        """Read a session that is here."""
        with open_regular(self._path(name)) as file:
            head, newline, state = file.read().partition(b"\n")
        try:
            fields: dict[str, Any] = parse_json(head, "it")
            if fields.pop("micronet") != _MAGIC or not newline:
                raise ValueError
            return Saved(**fields), state
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DamagedSessionError("the saved session is damaged: begin a new one") from None

    def delete(self, name: str) -> None:
        """Remove a session, if it is here."""
        if self._seen.pop(name, None) is not None:
            self._path(name).unlink(missing_ok=True)

    def older_than(self, seconds: float) -> list[str]:
        """Return the sessions that were last written longer ago."""
        before = time.time() - seconds
        return [name for name, written in self._seen.items() if written < before]

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.session"
