"""The size of a corpus before it is built, for estimating the cost of training."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from micronet_lm.config import CorpusConfig
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.wikitext import PUBLISHED
from micronet_lm.training.preparation import is_built, make_corpus


@dataclass(frozen=True, kw_only=True)
class CorpusSize:
    """Vocabulary and token counts of a corpus."""

    words: int
    """Size of the vocabulary."""

    tokens: Mapping[str, int]
    """Number of tokens in each split."""

    @property
    def id_bytes(self) -> int:
        """Number of bytes per id."""
        return 1 if self.words <= 1 << 8 else 2 if self.words <= 1 << 16 else 4


def corpus_size(config: CorpusConfig, place: Path, given: Path | None = None) -> CorpusSize:
    """Return the size of an existing corpus, the known size of a published one, or count.

    Counting builds the corpus in a temporary folder: it takes seconds for a book.
    """
    for folder in (given, place):
        if folder is not None and is_built(folder):
            return _facts(Corpus.open(folder))
    published = PUBLISHED.get(config.source)
    plain = config.tokenizer in (None, "wikitext") and config.min_count in (None, 1)
    if published and plain and config.max_vocabulary is None:
        return CorpusSize(words=published.words, tokens=published.tokens)
    if published:  # not downloaded yet: its published numbers are an upper bound
        words = min(published.words, config.max_vocabulary or published.words)
        return CorpusSize(words=words, tokens=published.tokens)
    with tempfile.TemporaryDirectory() as temporary:
        return _facts(make_corpus(config, Path(temporary) / "corpus"))


def _facts(corpus: Corpus) -> CorpusSize:
    return CorpusSize(words=corpus.manifest.words, tokens=dict(corpus.manifest.tokens))
