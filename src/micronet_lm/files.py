"""Write files atomically by renaming, open only regular files, read records, and lock folders.

What is read must be a regular file: a pipe would block, a device need not end. Where something is
written, a symbolic link is not followed: it may point at a file that is not ours.
"""

import errno
import fcntl
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from micronet_lm.errors import MicronetError
from micronet_lm.strict_json import parse_json

LARGEST_RECORD = 64 << 20
"""Bytes of a JSON file that describes something else, at most."""
_NO_RECORD = (errno.EINVAL, errno.EFBIG, errno.EISDIR)
"""Errors of `read_small` for what is there but is not a regular file of the right size."""


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
def replacing(path: Path, *, mode: int = 0o644) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it is fsynced and renamed to `path`.

    When the body raises, the temporary file is removed and an existing `path` is kept. `mode` is
    that of the new file.
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
        temporary.chmod(mode)
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def leftovers(path: Path) -> list[Path]:
    """Return what `replacing` left beside `path` in processes that were killed, or is writing."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.tmp")
    return [other for other in path.parent.iterdir() if pattern.fullmatch(other.name)]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, created if missing; the lock is released when its process ends.

    Raise BlockingIOError when another process holds it.
    """
    make_folder(folder)
    with open_own(folder / ".lock", os.O_RDWR) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; refuse anything else without waiting for it."""
    return os.fdopen(_descriptor(path, os.O_RDONLY), "rb")


def open_own(path: Path, flags: int) -> BinaryIO:
    """Open a file for writing in place, created if missing; refuse a link instead of following it.

    `flags` are those of `os.open`, such as `os.O_WRONLY | os.O_APPEND`.
    """
    mode = "r+b" if flags & os.O_RDWR else "ab" if flags & os.O_APPEND else "wb"
    return os.fdopen(_descriptor(path, flags | os.O_CREAT | os.O_NOFOLLOW), mode)  # type: ignore[return-value]


def read_small(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes; a longer one is not read."""
    with open_regular(path) as file:
        # A read reserves room for all that it asks for: ask for no more than there is.
        data = file.read(min(os.fstat(file.fileno()).st_size, limit) + 1)
    if len(data) > limit:
        why = f"has more than {limit:,} bytes, too many for what it should be; give the right file"
        raise OSError(errno.EFBIG, why, str(path))
    return data


def read_json(path: Path, limit: int = LARGEST_RECORD) -> Any:
    """Read a small JSON file, such as a record or a manifest; ValueError if it is not strict."""
    return parse_json(read_small(path, limit), "it")


def read_json_lines(path: Path, limit: int = LARGEST_RECORD) -> list[Any]:
    """Read a small file of one JSON value per line, as `read_json` reads one.

    What stands after the last line's end is left out: a killed process may leave half a line.
    """
    lines = read_small(path, limit).split(b"\n")[:-1]
    return [parse_json(line, f"line {number}") for number, line in enumerate(lines, 1)]


@contextmanager
def refusing_damage(path: Path, kind: type[MicronetError], remedy: str) -> Iterator[None]:
    """Turn what is wrong with a record into one sentence: its path, what it is, and the remedy.

    The body reads the record and takes it apart. Errors of the disk are left as they are: a file
    that is missing or private is not damaged.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_RECORD:
            raise
        why = f"it {(error.strerror or '').partition(';')[0]}"
    except KeyError as error:
        why = f"it has no {error}"
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        why = " ".join(str(error).split())
    else:
        return
    raise kind(f"{path} is damaged ({why}): {remedy}")


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a regular file."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write a small text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _descriptor(path: Path, flags: int) -> int:
    """Open a regular file; O_NONBLOCK, so that a pipe without a writer does not stop us."""
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP and flags & os.O_NOFOLLOW:
            why = "is a symbolic link, which is not followed for writing; remove it"
            raise OSError(errno.ELOOP, why, str(path)) from None
        if error.errno == errno.ENXIO:  # a pipe that nobody reads, or a socket
            raise _irregular(path) from None
        raise
    kind = os.fstat(handle).st_mode
    if stat.S_ISREG(kind):
        return handle
    os.close(handle)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, "is a directory; give a file", str(path))
    raise _irregular(path)


def _irregular(path: Path) -> OSError:
    return OSError(errno.EINVAL, "is not a regular file; give one", str(path))


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
