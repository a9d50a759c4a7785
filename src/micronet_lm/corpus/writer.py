"""Write a corpus folder: other files are never changed, and no half-written file is ever read."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from micronet_lm.corpus.manifest import (
    DROPPED,
    FILES,
    MANIFEST,
    FileRecord,
    Manifest,
    Settings,
    is_corpus,
    split_file,
)
from micronet_lm.corpus.npy import npy_header
from micronet_lm.corpus.splits import SPLITS
from micronet_lm.corpus.vocabulary import Ids
from micronet_lm.errors import CorpusError
from micronet_lm.files import check_folder, replacing


def claim(folder: Path, settings: Settings, *, force: bool) -> None:
    """Refuse a folder that must not be overwritten; change nothing in it."""
    if not folder.exists():
        try:
            check_folder(folder)
        except OSError as error:
            raise CorpusError(f"{folder}: {error.strerror}") from None
        return
    if not folder.is_dir():
        raise CorpusError(f"{folder} is a file: give --out a folder that does not exist yet")
    if is_corpus(folder):
        if not force:
            raise CorpusError(_occupied(folder, settings))
        return
    foreign = sorted(path.name for path in folder.iterdir() if not _is_leftover(path))
    if foreign:
        raise CorpusError(
            f"{folder} contains {foreign[0]!r}, which is not part of a corpus: give --out an empty "
            "folder or one that does not exist yet"
        )


def clear(folder: Path) -> None:
    """Remove the temporary files of an interrupted build."""
    for path in folder.iterdir() if folder.exists() else ():
        if _is_temporary(path):
            path.unlink()


class SplitFile:
    """An array of ids on disk that grows block by block to a length known in advance."""

    def __init__(self, path: Path, dtype: np.dtype[np.unsignedinteger[Any]], length: int) -> None:
        self._file = path.open("wb")
        self._hash = hashlib.sha256()
        self._left = length
        self._bytes = 0
        self._write(npy_header(dtype, length))

    def append(self, ids: Ids) -> None:
        """Write the next ids."""
        self._left -= len(ids)
        self._write(ids.tobytes())

    def finish(self) -> FileRecord:
        """Check that all ids were written; return the file's size and hash."""
        self._file.close()
        if self._left:
            raise CorpusError(
                "the text changed while the corpus was built "
                f"({abs(self._left)} tokens {'fewer' if self._left > 0 else 'more'} in the second "
                "reading): build it again when nothing writes to it"
            )
        return {"bytes": self._bytes, "sha256": self._hash.hexdigest()}

    def __enter__(self) -> "SplitFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)
        self._bytes += len(data)


@contextmanager
def split_files(
    folder: Path, dtype: np.dtype[np.unsignedinteger[Any]], lengths: Mapping[str, int]
) -> Iterator[dict[str, SplitFile]]:
    """Open the three files of ids; they are renamed into place together after the body.

    Until then an old corpus stays complete; its manifest is removed just before the renaming.
    """
    with ExitStack() as stack:
        yield {
            split: stack.enter_context(
                SplitFile(
                    stack.enter_context(replacing(folder / split_file(split))),
                    dtype,
                    lengths[split],
                )
            )
            for split in SPLITS
        }
        (folder / MANIFEST).unlink(missing_ok=True)


def _occupied(folder: Path, settings: Settings) -> str:
    try:
        there = Manifest.load(folder).settings
    except CorpusError:
        return f"{folder} contains a damaged or older corpus: give --force to replace it"
    if there == settings:
        return f"{folder} already contains this corpus: use it, or give --force to build it again"
    return (
        f"{folder} contains a corpus of {there.source} built with other settings: give another "
        "--out, or --force to replace it"
    )


def _is_temporary(path: Path) -> bool:
    return path.suffix == ".tmp" and path.name.startswith(
        tuple(f".{name}." for name in (*FILES, DROPPED, MANIFEST))
    )


def _is_leftover(path: Path) -> bool:
    return path.is_file() and (path.name in (*FILES, DROPPED) or _is_temporary(path))
