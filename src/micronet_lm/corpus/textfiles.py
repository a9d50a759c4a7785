"""The source for a user's own text: a file, a folder or a pattern."""

import glob
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from micronet_lm.corpus.blocks import BLOCK, Block, read_blocks
from micronet_lm.corpus.splits import (
    SPLITS,
    Ratio,
    Splitting,
    block_splits,
    document_splits,
    splitting_of,
)
from micronet_lm.errors import CorpusError
from micronet_lm.files import open_regular

SUFFIXES = (".txt", ".md")
"""Suffixes of the files that are read from a folder."""


class _Span(NamedTuple):
    """Whole lines of one file that belong to one split."""

    split: str
    path: Path
    start: int
    stop: int


class TextFiles:
    """UTF-8 files in sorted order; whole files, or blocks of lines, go to the splits in turn."""

    default_tokenizer = "word"
    # A word that occurs once teaches little about itself, but counted as `<unk>` it teaches how
    # unknown words are used; with 1, `<unk>` would never occur in the train split.
    default_min_count = 2

    def __init__(self, source: str, ratio: Ratio) -> None:
        self.ratio = ratio
        self.name = source
        self._paths = find_files(source)
        sizes = [path.stat().st_size for path in self._paths]
        self.size: int | None = sum(sizes)
        if not self.size:
            raise CorpusError(f"{source} contains no text: give files with at least a few lines")
        self.splitting: Splitting | None = splitting_of(sizes, ratio)
        if self.splitting == "documents":
            self._spans = _whole_files(self._paths, sizes, ratio)
        else:
            self._spans = _blocks_of_lines(self._paths, sizes, ratio)
        self.documents: Mapping[str, int] | None = {
            split: len({span.path for span in self._spans if span.split == split})
            for split in SPLITS
        }

    def blocks(self) -> Iterator[Block]:
        """Read the text in its order."""
        for span in self._spans:
            with open_regular(span.path) as stream:
                stream.seek(span.start)
                size = span.stop - span.start
                name = str(span.path)
                yield from read_blocks(stream, span.split, name=name, start=span.start, size=size)

    def check(self, tokenizer: str, tokens: Mapping[str, int], words: int) -> None:
        """Accept any text: nothing is known about it in advance."""


def find_files(source: str) -> list[Path]:
    """Return the files that a path or a pattern names, in sorted order."""
    if not source.isprintable() and any("\ud800" <= sign <= "\udfff" for sign in source):
        raise CorpusError(
            f"the name {source!r} is not UTF-8: give a text whose path can be written down"
        )
    path = expanded(source)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = [file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES]
        where = f"the folder {source} contains no {' or '.join('*' + s for s in SUFFIXES)} file"
    elif glob.has_magic(source):
        found = [Path(match) for match in glob.glob(str(path), recursive=True)]  # noqa: PTH207 (`**` and absolute patterns in one)
        where = f"no file matches {source}"
    else:
        found, where = [], f"there is no file or folder {source}"
    files = sorted((file for file in found if file.is_file()), key=lambda file: file.as_posix())
    if not files:
        raise CorpusError(f"{where}: give a text file, a folder of text files or a pattern")
    return _each_once(files)


def left_out(source: str) -> str:
    """Return a sentence on files of a folder that are not read; empty if there are none.

    Hidden files and folders are not meant to be read, so they are not counted.
    """
    folder = expanded(source)
    if not folder.is_dir():
        return ""
    others = [
        file
        for file in folder.rglob("*")
        if file.suffix.lower() not in SUFFIXES
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
    ]
    if not others:
        return ""
    names = " and ".join("*" + suffix for suffix in SUFFIXES)
    number = f"{len(others):,} other file{'s are' if len(others) > 1 else ' is'} left out"
    ((usual, _),) = Counter(file.suffix for file in others).most_common(1)
    return (
        f"{number}: of a folder, {names} are read; for others give a pattern in quotes, such as "
        f"'{source.rstrip('/')}/**/*{usual}'"
    )


def expanded(source: str | Path) -> Path:
    """Return a path with its `~` replaced; a user that does not exist is refused."""
    try:
        return Path(source).expanduser()
    except RuntimeError:
        user = str(source).split("/")[0]
        raise CorpusError(
            f"there is no user of the path {source}: write the folder instead of {user}"
        ) from None


def _each_once(files: list[Path]) -> list[Path]:
    """Drop files that are reached a second time, through links or loops of links."""
    found: dict[tuple[int, int], Path] = {}
    for file in sorted(files, key=Path.is_symlink):  # a file's own name before links to it
        facts = file.stat()
        found.setdefault((facts.st_dev, facts.st_ino), file)
    kept = set(found.values())
    return [file for file in files if file in kept]


def _whole_files(paths: list[Path], sizes: list[int], ratio: Ratio) -> list[_Span]:
    splits = document_splits(sizes, ratio)
    files = zip(splits, paths, sizes, strict=True)
    return [_Span(split, path, 0, size) for split, path, size in files if size]


def _blocks_of_lines(paths: list[Path], sizes: list[int], ratio: Ratio) -> list[_Span]:
    """Cut the files, as if they were one, where a line ends after each wanted cut."""
    cuts = iter(block_splits(sum(sizes), ratio))
    split, wanted = next(cuts)
    spans, before = [], 0  # `before` counts the bytes of earlier files
    for path, size in zip(paths, sizes, strict=True):
        start = 0
        while start < size:
            stop = size if wanted >= before + size else _line_end(path, wanted - before)
            if start < stop:
                spans.append(_Span(split, path, start, stop))
                start = stop
            if wanted >= before + size:  # the next file continues this split
                break
            split, wanted = next(cuts)
        before += size
    return spans


def _line_end(path: Path, offset: int) -> int:
    """Return the first position at or after `offset` where a line begins or the file ends."""
    if offset == 0:
        return 0
    with open_regular(path) as stream:
        stream.seek(offset - 1)
        position = offset - 1
        while data := stream.read(BLOCK):
            feed = data.find(b"\n")
            at = data.find(b"\r", 0, len(data) if feed < 0 else feed)
            if at >= 0:
                following = data[at + 1 : at + 2] or stream.read(1)
                return position + at + (2 if following == b"\n" else 1)
            if feed >= 0:
                return position + feed + 1
            position += len(data)
    return position
