"""Stream named files out of a folder, a zip or a tar, without unpacking it."""

import hashlib
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from micronet_lm.errors import CorpusError
from micronet_lm.files import open_regular

_BROKEN = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError),
    NotImplementedError,  # a method or a version of zip that Python does not have
    *(UnicodeError, struct.error, OverflowError),  # malformed names and numbers
)


class Member(NamedTuple):
    """One file, open for reading until the next one is requested."""

    name: str
    stream: IO[bytes]
    size: int
    """Size of the file in bytes, as its folder or archive declares it."""


class HashedStream:
    """A stream that hashes what is read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._hash = stream, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes."""
        data = self._stream.read(size)
        self._hash.update(data)
        return data

    @property
    def sha256(self) -> str:
        """Hash of the bytes that were read."""
        return self._hash.hexdigest()


def members(
    place: Path, names: Sequence[str], accept: Callable[[PurePosixPath], bool] = lambda path: True
) -> Iterator[Member]:
    """Yield each of the named files once, in the order in which they are stored.

    In an archive a file may be in any folder whose path `accept` accepts; no path of an archive
    ever reaches the file system. A missing file is an error.
    """
    missing = set(names)

    def wanted(path: str) -> bool:
        parsed = PurePosixPath(path)
        return parsed.name in missing and accept(parsed)

    if place.is_dir():
        found = _in_folder(place, names)
    elif zipfile.is_zipfile(place):
        found = _in_zip(place, wanted)
    else:
        found = _in_tar(place, wanted)
    for member in found:
        missing.discard(member.name)
        yield member
    if missing:
        absent = ", ".join(name for name in names if name in missing)
        raise CorpusError(
            f"{place} does not contain {absent}: give a folder, zip or tar with {', '.join(names)}"
        )


@contextmanager
def readable(place: Path) -> Iterator[None]:
    """Turn every error of a broken archive into one `CorpusError`."""
    try:
        yield
    except _BROKEN as error:
        raise CorpusError(
            f"{place} is not a readable zip or tar ({error or type(error).__name__}): "
            "fetch it again, or unpack it with another program and give the folder"
        ) from error


def _in_folder(place: Path, names: Sequence[str]) -> Iterator[Member]:
    for path in (place / name for name in names if (place / name).is_file()):
        with open_regular(path) as stream:
            yield Member(path.name, stream, path.stat().st_size)


def _in_zip(place: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    with zipfile.ZipFile(place) as archive:
        for entry in archive.infolist():
            if entry.is_dir() or not wanted(entry.filename):
                continue
            if entry.flag_bits & 1:
                raise CorpusError(f"{place} is encrypted: give an archive without a password")
            with archive.open(entry) as stream:
                yield Member(PurePosixPath(entry.filename).name, stream, entry.file_size)


def _in_tar(place: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    # Read as a stream: seeking backwards in a compressed tar would decompress it again.
    with tarfile.open(place, "r|*") as archive:
        for entry in archive:
            if not entry.isfile() or not wanted(entry.name):
                continue
            stream = archive.extractfile(entry)
            if stream is not None:
                with stream:
                    yield Member(PurePosixPath(entry.name).name, stream, entry.size)
