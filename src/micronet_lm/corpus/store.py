"""A corpus on disk: three memory-mapped arrays of ids, a vocabulary and a manifest."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from micronet_lm.corpus.manifest import (
    DROPPED,
    FILES,
    MANIFEST,
    VOCABULARY,
    Manifest,
    fingerprint,
    split_file,
)
from micronet_lm.corpus.npy import npy_header
from micronet_lm.corpus.splits import SPLITS, unknown_disagreement
from micronet_lm.corpus.tokenizers import TOKENIZERS, Tokenizer, tokenizer
from micronet_lm.corpus.vocabulary import Ids, Vocabulary
from micronet_lm.errors import CorpusError, RunError
from micronet_lm.files import file_sha256, open_regular


@dataclass(frozen=True, kw_only=True, eq=False)
class Corpus:
    """A complete corpus; its splits are memory-mapped, so opening it is fast."""

    path: Path
    """The corpus folder."""
    manifest: Manifest
    """Its settings and counts."""
    vocabulary: Vocabulary
    """Its words in the order of their ids."""
    tokenizer: Tokenizer
    """The tokenizer it was built with."""
    _splits: dict[str, Ids]
    _checked: set[str] = field(default_factory=set)
    """Splits whose hash was right when they were first asked for."""

    @classmethod
    def open(cls, path: Path | str) -> "Corpus":
        """Open a corpus folder; check every file's size and the vocabulary's hash.

        A split's hash is checked when the split is first asked for. Splits stay mapped: a file that
        is truncated while it is used ends the process with SIGBUS; one that is replaced does not.
        """
        path = Path(path)
        manifest = Manifest.load(path)
        for name in FILES:
            _check_size(path / name, manifest.files[name]["bytes"])
        if manifest.tokenizer not in TOKENIZERS:
            raise CorpusError(
                f"the corpus {path} was built with the tokenizer {manifest.tokenizer!r}, which "
                f"this program does not have: build it again with {' or '.join(TOKENIZERS)}"
            )
        if fingerprint(manifest.files, manifest.tokenizer) != manifest.fingerprint:
            raise _damaged(path / MANIFEST, "its fingerprint is not that of its hashes")
        _check_hash(path, VOCABULARY, manifest)
        vocabulary = Vocabulary.load(path / VOCABULARY)
        if (vocabulary.size, str(vocabulary.dtype)) != (manifest.words, manifest.dtype):
            raise _damaged(
                path / VOCABULARY,
                f"{vocabulary.size} words, ids of type {vocabulary.dtype}, instead of "
                f"{manifest.words} words, ids of type {manifest.dtype}",
            )
        return cls(
            path=path,
            manifest=manifest,
            vocabulary=vocabulary,
            tokenizer=tokenizer(manifest.tokenizer),
            _splits={split: _open_split(path, split, manifest, vocabulary) for split in SPLITS},
        )

    @property
    def fingerprint(self) -> str:
        """Hash of the ids, the words and the tokenizer."""
        return self.manifest.fingerprint

    def split(self, name: str) -> Ids:
        """Return the ids of `train`, `valid` or `test`, memory-mapped and read-only."""
        if name not in self._splits:
            raise CorpusError(f"a corpus has no split {name!r}: choose one of {', '.join(SPLITS)}")
        if name not in self._checked:
            _check_hash(self.path, split_file(name), self.manifest)
            self._checked.add(name)
        return self._splits[name]

    def check_dropped(self) -> None:
        """Compare the file of dropped words with its hash, which older corpora do not have."""
        path, expected = self.path / DROPPED, self.manifest.dropped
        if expected is None:
            return
        if not path.exists():
            raise _damaged(path, "missing")
        if file_sha256(path) != expected:
            raise _damaged(path, "other bytes")

    def tokens(self, name: str) -> int:
        """Return the number of tokens of a split."""
        return len(self._splits[name])

    def describe(self, top: int) -> dict[str, Any]:
        """Return everything worth knowing as plain values, with the `top` most frequent words."""
        facts = asdict(self.manifest)
        del facts["files"], facts["dropped"]
        share = {s: facts["unknown"][s] / facts["tokens"][s] for s in SPLITS}
        words = zip(self.vocabulary.words[:top], self.vocabulary.counts[:top], strict=True)
        return {
            "path": str(self.path),
            **facts,
            "unknown_share": share,
            "warning": unknown_disagreement(facts["tokens"], facts["unknown"]),
            "most_frequent": [{"word": word, "count": count} for word, count in words],
        }

    def encode(self, text: str) -> Ids:
        """Convert text to ids with the corpus's tokenizer; no `<eos>` is added at the end."""
        return self.vocabulary.encode(self.tokenizer.tokens(text))

    def decode(self, ids: ArrayLike) -> str:
        """Convert ids to text; an id outside the vocabulary is refused."""
        return self.tokenizer.join(self.vocabulary.decode(ids))


def open_known(place: Path, fingerprint: str) -> Corpus:
    """Open the corpus of a run at its present path; refuse one with another fingerprint."""
    if not place.is_dir():
        raise RunError(f"the run's corpus is no longer at {place}: give its path with --corpus")
    corpus = Corpus.open(place)
    if corpus.fingerprint != fingerprint:
        raise RunError(
            f"{place} is not the corpus of this run (fingerprint {corpus.fingerprint[:12]}, "
            f"the run's is {fingerprint[:12]}): give the right path with --corpus"
        )
    return corpus


def _open_split(folder: Path, split: str, manifest: Manifest, vocabulary: Vocabulary) -> Ids:
    path = folder / split_file(split)
    dtype, length = vocabulary.dtype, manifest.tokens[split]
    header = npy_header(dtype, length)
    with open_regular(path) as file:
        same = file.read(len(header)) == header
    if not same or path.stat().st_size != len(header) + length * dtype.itemsize:
        raise _damaged(path, f"not {length} ids of type {dtype}")
    return np.memmap(path, dtype=dtype, mode="r", offset=len(header), shape=(length,))


def _check_hash(folder: Path, name: str, manifest: Manifest) -> None:
    """Refuse a file whose bytes are not those that were written."""
    if file_sha256(folder / name) != manifest.files[name]["sha256"]:
        raise _damaged(folder / name, "other bytes of the same length")


def _check_size(path: Path, expected: int) -> None:
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        raise _damaged(path, "missing") from None
    if found != expected:
        raise _damaged(path, f"{found} bytes instead of {expected}")


def _damaged(path: Path, why: str) -> CorpusError:
    return CorpusError(
        f"{path} does not match its manifest ({why}): build the corpus again with --force"
    )
