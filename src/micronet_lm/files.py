"""Files that appear by rename: complete, or not at all."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it is fsynced and renamed to `path`.

    When the body raises, the temporary file is removed and whatever stood at `path` stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if need be; the lock dies with its holder.

    Raises BlockingIOError when another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def write_text(path: Path, text: str) -> None:
    """Write a small text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _sync(path: Path) -> None:
    """Force a file's or a folder's contents to the disk, so that a rename never precedes them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
