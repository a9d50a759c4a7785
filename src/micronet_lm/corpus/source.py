"""Where the text of a corpus comes from."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from micronet_lm.corpus.blocks import Block
from micronet_lm.corpus.pythondocs import PythonDocs
from micronet_lm.corpus.splits import DEFAULT_RATIO, Ratio, Splitting, check_ratio
from micronet_lm.corpus.textfiles import TextFiles
from micronet_lm.corpus.wikitext import PUBLISHED, WikiText
from micronet_lm.errors import UsageError


class Source(Protocol):
    """Text in three splits that can be read more than once and is the same each time."""

    @property
    def name(self) -> str:
        """The name the user gave."""

    @property
    def default_tokenizer(self) -> str:
        """The tokenizer that suits the text."""

    @property
    def default_min_count(self) -> int:
        """Fewest occurrences of a word in the vocabulary, unless the user chooses another limit."""

    @property
    def size(self) -> int | None:
        """Number of bytes that `blocks` will read, None if not known in advance."""

    @property
    def documents(self) -> Mapping[str, int] | None:
        """Number of documents in each split, None for a source without documents."""

    @property
    def ratio(self) -> Ratio | None:
        """The shares of the splits, None for a source that is published with splits."""

    @property
    def splitting(self) -> Splitting | None:
        """How the text is divided into splits; None for a source that is published with splits."""

    def blocks(self) -> Iterator[Block]:
        """Read the whole text once, some lines at a time."""

    def check(self, tokenizer: str, tokens: Mapping[str, int], words: int) -> None:
        """Raise `CorpusError` when the counts differ from what is known about the source.

        `tokens` counts the tokens of each split, `words` the distinct words of the train split.
        """


def find_source(
    source: str,
    *,
    from_path: Path | None,
    split: Ratio | None,
    tokenizer: str | None,
    downloads: Path,
) -> Source:
    """Return the source with that name, or else the text files at that path."""
    ratio = DEFAULT_RATIO if split is None else check_ratio(split)
    if source in PUBLISHED:
        if split is not None:
            raise UsageError(f"{source} is published with its own splits: leave out --split")
        as_written = tokenizer not in (None, WikiText.default_tokenizer)
        return WikiText(source, place=from_path, downloads=downloads, as_written=as_written)
    if from_path is not None:
        raise UsageError(
            f"--from {from_path} works only with {' or '.join(PUBLISHED)}, but the source is "
            f"{source}: leave out --from, or give that path as the source"
        )
    return PythonDocs(ratio) if source == PythonDocs.name else TextFiles(source, ratio)
