"""Build a corpus on disk from text in two passes: count the words, then write their ids.

Memory use depends on the number of distinct words and the longest line, not on the length of the
text.
"""

import hashlib
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from micronet_lm.corpus.manifest import (
    DROPPED,
    VOCABULARY,
    FileRecord,
    Manifest,
    Settings,
    fingerprint,
    split_file,
)
from micronet_lm.corpus.source import Source, find_source
from micronet_lm.corpus.splits import SPLITS, Ratio
from micronet_lm.corpus.store import Corpus
from micronet_lm.corpus.textfiles import expanded
from micronet_lm.corpus.tokenizers import Tokenizer, newest_tokenizer
from micronet_lm.corpus.tokenizers import tokenizer as find_tokenizer
from micronet_lm.corpus.vocabulary import EOS, UNK, Vocabulary, check_limits
from micronet_lm.corpus.writer import claim, clear, split_files
from micronet_lm.errors import CorpusError
from micronet_lm.files import write_text
from micronet_lm.progress import bar


def build_corpus(
    source: str,
    out: Path | str,
    *,
    tokenizer: str | None = None,
    from_path: Path | str | None = None,
    min_count: int | None = None,
    max_vocabulary: int | None = None,
    split: Ratio | None = None,
    force: bool = False,
    downloads: Path | str | None = None,
) -> Corpus:
    """Build the corpus folder `out` from a source and return the opened corpus.

    `source` is `python-docs`, `wikitext-2`, `wikitext-103`, or a file, folder or pattern of UTF-8
    text. `from_path` is the path of a published corpus on this machine; without it, its zip is
    downloaded into `downloads` (default: the parent folder of `out`). Other arguments that are
    None take the source's default. `force` replaces an existing corpus.
    """
    out = Path(out)
    try:
        chosen = find_source(
            source,
            from_path=None if from_path is None else expanded(from_path),
            split=split,
            tokenizer=tokenizer,
            downloads=out.parent if downloads is None else Path(downloads),
        )
        settings = Settings(
            source=source,
            tokenizer=newest_tokenizer(tokenizer or chosen.default_tokenizer).name,
            min_count=chosen.default_min_count if min_count is None else min_count,
            max_vocabulary=max_vocabulary,
            split=chosen.ratio,
            splitting=chosen.splitting,
        )
        check_limits(settings.min_count, max_vocabulary)
        claim(out, settings, force=force)
        _build(chosen, out, settings)
    except OSError as error:
        raise CorpusError(
            f"cannot build {out} ({error}): check file permissions and free disk space"
        ) from error
    return Corpus.open(out)


@dataclass
class Counts:
    """The result of the first pass."""

    words: Counter[str] = field(default_factory=Counter)
    """Number of occurrences of each token in the train split."""
    tokens: Counter[str] = field(default_factory=Counter)
    """Number of tokens in each split."""
    text_bytes: Counter[str] = field(default_factory=Counter)
    """Number of bytes of each split."""


def count(source: Source, tokenizer: Tokenizer) -> Counts:
    """Count the tokens of every split and the words of the train split."""
    counts = Counts()
    with bar("Counting words", source.size, unit="B") as advance:
        for split, text, size in source.blocks():
            tokens = tokenizer.tokens(text)
            counts.tokens[split] += len(tokens)
            counts.text_bytes[split] += size
            if split == "train":
                counts.words.update(tokens)
            advance(size)
    return counts


def encode(
    source: Source, tokenizer: Tokenizer, vocabulary: Vocabulary, tokens: Counter[str], out: Path
) -> tuple[dict[str, FileRecord], Counter[str]]:
    """Write the ids of every split; return the files' records and each split's `<unk>` count."""
    unknown: Counter[str] = Counter()
    with (
        bar("Writing ids", source.size, unit="B") as advance,
        split_files(out, vocabulary.dtype, tokens) as files,
    ):
        for split, text, size in source.blocks():
            ids = vocabulary.encode(tokenizer.tokens(text))
            files[split].append(ids)
            unknown[split] += int(np.count_nonzero(ids == vocabulary.id(UNK)))
            advance(size)
        records = {split_file(split): files[split].finish() for split in SPLITS}
    return records, unknown


def _build(source: Source, out: Path, settings: Settings) -> None:
    tokenizer = find_tokenizer(settings.tokenizer)
    counts = count(source, tokenizer)
    check_content(counts, settings.source)
    source.check(settings.tokenizer, counts.tokens, len(counts.words.keys() | {UNK, EOS}))
    vocabulary = Vocabulary.from_counts(
        counts.words, min_count=settings.min_count, max_vocabulary=settings.max_vocabulary
    )
    clear(out)
    files, unknown = encode(source, tokenizer, vocabulary, counts.tokens, out)
    vocabulary.save(out / VOCABULARY)
    dropped = _dropped(counts.words, vocabulary)
    write_text(out / DROPPED, dropped)
    data = vocabulary.to_bytes()
    files[VOCABULARY] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    Manifest(
        **asdict(settings),
        dtype=str(vocabulary.dtype),
        words=vocabulary.size,
        tokens=_by_split(counts.tokens),
        unknown=_by_split(unknown),
        text_bytes=_by_split(counts.text_bytes),
        documents=source.documents,
        files=files,
        fingerprint=fingerprint(files, settings.tokenizer),
        dropped=hashlib.sha256(dropped.encode()).hexdigest(),
    ).save(out)


def _dropped(words: Counter[str], vocabulary: Vocabulary) -> str:
    """Return the words that the vocabulary leaves out, the most frequent first."""
    left_out = [(word, count) for word, count in words.items() if word not in vocabulary]
    left_out.sort(key=lambda item: (-item[1], item[0]))
    return "".join(f"{count}\t{word}\n" for word, count in left_out)


def check_content(counts: Counts, source: str) -> None:
    """Refuse a corpus without words and a split without tokens."""
    if not counts.tokens.total() or not counts.words.keys() - {EOS}:
        raise CorpusError(f"{source} contains no words: give more text")
    for split in SPLITS:
        if not counts.tokens[split]:
            raise CorpusError(
                f"the {split} split of {source} would have no tokens, since a text is divided only "
                f"where lines end: break its lines (fold -s -w 500 {source} > lines.txt), give "
                "more text, or a larger share with --split"
            )


def _by_split(counter: Counter[str]) -> dict[str, int]:
    return {split: counter[split] for split in SPLITS}
