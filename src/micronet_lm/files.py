"""Write files atomically by renaming, and lock folders."""

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_folder(path: Path) -> None:
    """Refuse a folder that `make_folder` would refuse; change nothing.

    Below the working directory any folder can be made. Elsewhere its parent must exist, so that a
    mistyped `/new/folder/file` makes nothing.
    """
    existing = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not existing.is_dir():
        why = f"{existing} is a file, not a folder; choose another path"
        raise NotADirectoryError(errno.ENOTDIR, why, str(path))
    missing = [place for place in (path, *path.parents) if not place.exists()]
    if len(missing) > 1 and not _is_below_here(path):
        why = f"the folder {missing[1]} does not exist; make it first or choose another path"
        raise FileNotFoundError(errno.ENOENT, why, str(path))


def make_folder(path: Path) -> None:
    """Make a folder, with those above it, where they do not exist and may be made."""
    check_folder(path)
    path.mkdir(parents=True, exist_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it is fsynced and renamed to `path`.

    When the body raises, the temporary file is removed and an existing `path` is kept.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory; choose a file name", str(path))
    if path.exists() and not path.is_file():  # a device or a pipe would be lost to the rename
        raise FileExistsError(errno.EEXIST, "is not a regular file; choose another path", str(path))
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


def _is_below_here(path: Path) -> bool:
    """Return whether a path is in the working directory, unless that is the root of all."""
    here = Path.cwd()
    return here != Path(here.anchor) and path.resolve().is_relative_to(here)


def _sync(path: Path) -> None:
    """Flush a file or a folder to disk, so that a rename never precedes its contents."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
