"""Saved sessions on disk: one file each, in a folder that only its owner can read.

A file is a line of JSON, the bytes of the state, and the checksum of all that in 8 bytes, which
those of earlier versions do not have.
"""

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from micronet_lm.checksum import SUM_BYTES, checksum_bytes
from micronet_lm.errors import MicronetError
from micronet_lm.files import make_folder, open_regular, replacing
from micronet_lm.strict_json import parse_json

_NAME = re.compile(r"[A-Za-z0-9_-]{22}\.session")
_MAGIC, _WITHOUT_CHECKSUM = "micronet session 2", "micronet session 1"
MARK = b'{"micronet": "micronet session '
"""What a file begins with."""


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
        data = json.dumps({"micronet": _MAGIC, **vars(about)}).encode() + b"\n" + state
        with replacing(self._path(name), mode=0o600) as temporary:
            temporary.write_bytes(data + checksum_bytes(data))
        self._seen[name] = time.time()

    def read(self, name: str) -> tuple[Saved, bytes]:
        """Read a session that is here."""
        with open_regular(self._path(name)) as file:
            about, state, _ = parsed(file.read())
        return about, state

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


def parsed(data: bytes) -> tuple[Saved, bytes, bool]:
    """Return what a file holds, and whether it has a checksum; refuse a damaged one."""
    head, newline, state = data.partition(b"\n")
    try:
        fields: dict[str, Any] = parse_json(head, "it")
        magic = fields.pop("micronet")
        if not newline or magic not in (_MAGIC, _WITHOUT_CHECKSUM):
            raise ValueError
        if magic == _MAGIC:
            if data[-SUM_BYTES:] != checksum_bytes(data[:-SUM_BYTES]):
                raise ValueError
            state = state[:-SUM_BYTES]
        return Saved(**fields), state, magic == _MAGIC
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamagedSessionError("the saved session is damaged: begin a new one") from None
