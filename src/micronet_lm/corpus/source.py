"""Where the text of a corpus comes from."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from micronet_lm.corpus.blocks import Block
from micronet_lm.corpus.pythondocs import PythonDocs
from micronet_lm.corpus.splits import DEFAULT_RATIO, Ratio, check_ratio
from micronet_lm.corpus.textfiles import TextFiles
from micronet_lm.corpus.wikitext import PUBLISHED, WikiText
from micronet_lm.errors import UsageError


class Source(Protocol):
    """Text in three splits that can be read more than once and is the same each time."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def default_tokenizer(self) -> str:
        """The tokenizer that suits the text."""

    @property
    def default_min_count(self) -> int:
        """How often a word must occur to be one of the vocabulary, unless the user says."""

    @property
    def size(self) -> int | None:
        """The bytes that `blocks` will read, when that is known in advance."""

    @property
    def documents(self) -> Mapping[str, int] | None:
        """The documents of each split, where the source is made of documents."""

    @property
    def ratio(self) -> Ratio | None:
        """The shares of the splits, None where the source is published with its own."""

    def blocks(self) -> Iterator[Block]:
        """Read everything once, some lines at a time."""

    def check(self, tokenizer: str, tokens: Mapping[str, int], words: int) -> None:
        """Raise `CorpusError` when the counts are not what is known about the source.

        `tokens` are those of each split, `words` the distinct ones of the train split.
        """


def find_source(
    source: str,
    *,
    from_path: Path | None,
    split: Ratio | None,
    tokenizer: str | None,
    downloads: Path,
) -> Source:
    """Give the source of that name, or else the text files at that path."""
    ratio = DEFAULT_RATIO if split is None else check_ratio(split)
    if source in PUBLISHED:
        if split is not None:
            raise UsageError(f"the splits of {source} are published: leave --split out")
        as_written = tokenizer not in (None, WikiText.default_tokenizer)
        return WikiText(source, place=from_path, downloads=downloads, as_written=as_written)
    if from_path is not None:
        raise UsageError(
            f"--from {from_path} tells where {' or '.join(PUBLISHED)} lies, but the source is "
            f"{source}: leave --from out, or give the place itself as source"
        )
    return PythonDocs(ratio) if source == PythonDocs.name else TextFiles(source, ratio)
