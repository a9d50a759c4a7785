"""Write files atomically by renaming, and lock folders."""

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        why = "not a directory, or its parent is not one; choose another path"
        raise NotADirectoryError(errno.ENOTDIR, why, str(path)) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it is fsynced and renamed to `path`.

    When the body raises, the temporary file is removed and an existing `path` is kept.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory; choose a file name", str(path))
    make_folder(path.parent)
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
    """Hold the lock of a folder, created if missing; the lock is released when its process ends.

    Raise BlockingIOError when another process holds it.
    """
    make_folder(folder)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def write_text(path: Path, text: str) -> None:
    """Write a small text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _sync(path: Path) -> None:
    """Flush a file or a folder to disk, so that a rename never precedes its contents."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
