"""The source for a user's own text: a file, a folder or a pattern."""

import glob
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from micronet_lm.corpus.blocks import BLOCK, Block, read_blocks
from micronet_lm.corpus.splits import SPLITS, Ratio
from micronet_lm.errors import CorpusError

SUFFIXES = (".txt", ".md")
"""Suffixes of the files that are read from a folder."""


class _Span(NamedTuple):
    """Whole lines of one file that belong to one split."""

    split: str
    path: Path
    start: int
    stop: int


class TextFiles:
    """UTF-8 files in sorted order, divided by bytes at line ends into train, valid and test."""

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
        self._spans = _spans(self._paths, sizes, ratio)
        self.documents: Mapping[str, int] | None = {
            split: sum(span.split == split for span in self._spans) for split in SPLITS
        }

    def blocks(self) -> Iterator[Block]:
        """Read the text, one split after the other."""
        for span in self._spans:
            with span.path.open("rb") as stream:
                stream.seek(span.start)
                size = span.stop - span.start
                name = str(span.path)
                yield from read_blocks(stream, span.split, name=name, start=span.start, size=size)

    def check(self, tokenizer: str, tokens: Mapping[str, int], words: int) -> None:
        """Accept any text: nothing is known about it in advance."""


def find_files(source: str) -> list[Path]:
    """Return the files that a path or a pattern names, in sorted order."""
    path = Path(source).expanduser()
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
    return files


def _spans(paths: list[Path], sizes: list[int], ratio: Ratio) -> list[_Span]:
    ends = list(accumulate(sizes))
    total = ends[-1]
    cuts = [0]
    for share in (ratio[0], ratio[0] + ratio[1]):
        wanted = min(round(total * share), total - 1)
        file = bisect_right(ends, wanted)
        begin = ends[file] - sizes[file]
        cuts.append(begin + _line_end(paths[file], wanted - begin))
    cuts.append(total)
    spans = []
    for split, low, high in zip(SPLITS, cuts, cuts[1:], strict=False):
        for path, size, end in zip(paths, sizes, ends, strict=True):
            start, stop = max(low - (end - size), 0), min(high - (end - size), size)
            if start < stop:
                spans.append(_Span(split, path, start, stop))
    return spans


def _line_end(path: Path, offset: int) -> int:
    """Return the first position at or after `offset` where a line begins or the file ends."""
    if offset == 0:
        return 0
    with path.open("rb") as stream:
        stream.seek(offset - 1)
        position = offset - 1
        while data := stream.read(BLOCK):
            if (at := data.find(b"\n")) >= 0:
                return position + at + 1
            position += len(data)
    return position
