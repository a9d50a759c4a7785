"""Files that appear by rename: complete, or not at all."""

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def make_folder(path: Path) -> None:
    """Make a folder and those above it where they are not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        why = "it is no folder, or is in none; choose another place"
        raise NotADirectoryError(errno.ENOTDIR, why, str(path)) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it is fsynced and renamed to `path`.

    When the body raises, the temporary file is removed and whatever stood at `path` stays.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file", str(path))
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
    """Hold the lock of a folder, which is made if need be; the lock dies with its holder.

    Raises BlockingIOError when another process holds it.
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
    """Force a file's or a folder's contents to the disk, so that a rename never precedes them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
