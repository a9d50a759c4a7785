"""The manifest of a corpus, written last: its settings, counts, and the hashes of its files."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypedDict

from micronet_lm.checksum import checksum
from micronet_lm.config import own_text_command
from micronet_lm.corpus.splits import SPLITS, Ratio
from micronet_lm.corpus.textfiles import SUFFIXES
from micronet_lm.errors import CorpusError
from micronet_lm.files import read_json, write_text

MANIFEST = "manifest.json"
VOCABULARY = "vocabulary.tsv"
DROPPED = "dropped.tsv"
"""Words of the train split that the vocabulary leaves out, with their counts; older corpora have no
such file. They are not part of the corpus's fingerprint: its ids do not depend on them."""
CHECKSUM = "checksum"
"""Key of the manifest's file with the checksum of all other entries; older corpora have none."""
FORMAT = "micronet-corpus"
VERSION = 1


def split_file(split: str) -> str:
    """Return the name of the file with a split's ids."""
    return f"{split}.npy"


FILES = (*map(split_file, SPLITS), VOCABULARY)
"""The files whose size and hash a manifest records."""


class FileRecord(TypedDict):
    """Size and hash of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a build; the same settings and text give the same corpus."""

    source: str
    """`python-docs`, `wikitext-2`, `wikitext-103`, or a path or pattern as it was given."""
    tokenizer: str
    """The name of the tokenizer."""
    min_count: int
    """Words with fewer occurrences became `<unk>`."""
    max_vocabulary: int | None
    """Largest size allowed for the vocabulary, None for no limit."""
    split: Ratio | None
    """The shares of train, valid and test; None if the source has its own splits."""
    splitting: str | None = None
    """`blocks` of lines or whole `documents` in turn, or by documents' `names`; None where the
    source has splits of its own, and in corpora of version 0.1, whose text files were cut twice."""


@dataclass(frozen=True, kw_only=True)
class Manifest(Settings):
    """Description of a complete corpus."""

    dtype: str
    """The type of the ids."""
    words: int
    """The size of the vocabulary."""
    tokens: Mapping[str, int]
    """Number of tokens in each split."""
    unknown: Mapping[str, int]
    """Number of `<unk>` tokens in each split."""
    text_bytes: Mapping[str, int]
    """Number of bytes of text in each split."""
    documents: Mapping[str, int] | None
    """Number of documents in each split, for a source that consists of documents."""
    files: Mapping[str, FileRecord]
    """Size and hash of every other file of the corpus."""
    fingerprint: str
    """Hash of the whole corpus: the same ids, words and tokenizer give the same hash."""
    dropped: str | None = None
    """SHA-256 of the file of dropped words; None in older corpora."""

    def save(self, folder: Path) -> None:
        """Write the manifest, which completes the corpus."""
        record = {"format": FORMAT, "version": VERSION, **asdict(self)}
        record[CHECKSUM] = _checksum(record)
        write_text(folder / MANIFEST, json.dumps(record, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Manifest":
        """Read the manifest of a corpus folder; refuse unknown, missing and invalid entries."""
        record = _read(folder)
        written = record.pop(CHECKSUM, None)
        whole = written is None or written == _checksum(record)
        if (version := record.pop("version", None)) != VERSION:
            raise CorpusError(
                f"the corpus {folder} has format version {version}, but this program reads version "
                f"{VERSION}: build it again with --force"
            )
        if not whole:
            raise _damaged(folder, "its checksum is wrong")
        del record["format"]
        for later in ("splitting", "dropped"):  # which corpora of version 0.1 do not have
            record.setdefault(later, None)
        names = {field.name for field in fields(cls)}
        if record.keys() != names:
            odd = ", ".join(sorted(record.keys() ^ names))
            raise _damaged(folder, f"unknown or missing: {odd}")
        if isinstance(record["split"], list):
            record["split"] = tuple(record["split"])
        manifest = cls(**record)
        manifest._check(folder)
        return manifest

    @property
    def settings(self) -> Settings:
        """The settings the corpus was built with."""
        return Settings(**{field.name: getattr(self, field.name) for field in fields(Settings)})

    def _check(self, folder: Path) -> None:
        def numbers(value: object, keys: tuple[str, ...]) -> bool:
            return (
                isinstance(value, dict)
                and set(value) == set(keys)
                and all(isinstance(number, int) and number >= 0 for number in value.values())
            )

        sizes = isinstance(self.files, dict) and {
            name: record.get("bytes") if isinstance(record, dict) else None
            for name, record in self.files.items()
        }
        good = all(numbers(v, SPLITS) for v in (self.tokens, self.unknown, self.text_bytes))
        texts = (self.source, self.tokenizer, self.dtype, self.fingerprint)
        if not (good and numbers(sizes, FILES) and all(isinstance(t, str) for t in texts)):
            raise _damaged(folder, "values of the wrong kind")
        hashes = [record.get("sha256") for record in self.files.values()]
        if not all(isinstance(found, str) for found in hashes) or not isinstance(
            self.dropped, str | None
        ):
            raise _damaged(folder, "values of the wrong kind")


def _checksum(record: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest's entries, however they are laid out."""
    return checksum(json.dumps(record, sort_keys=True).encode())


def fingerprint(files: Mapping[str, FileRecord], tokenizer: str) -> str:
    """Return one hash of a corpus, computed from its files' hashes and its tokenizer's name."""
    lines = [f"{name} {files[name]['sha256']}\n" for name in FILES]
    return hashlib.sha256("".join([*lines, f"tokenizer {tokenizer}\n"]).encode()).hexdigest()


def is_corpus(folder: Path) -> bool:
    """Return whether a folder has a corpus manifest, of any version."""
    try:
        return bool(_read(folder))
    except CorpusError:
        return False


def _read(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise CorpusError(
            f"there is no corpus folder {folder}: make it with micronet corpus build --out {folder}"
        )
    try:
        record = read_json(folder / MANIFEST)
    except FileNotFoundError:
        if any((folder / name).exists() for name in FILES):
            raise CorpusError(
                f"the corpus {folder} is incomplete, it has no {MANIFEST}: build it again "
                "with --force"
            ) from None
        is_text = any(any(folder.rglob(f"*{suffix}")) for suffix in SUFFIXES)
        instead = f"; {own_text_command(str(folder))}" if is_text else ""
        raise CorpusError(
            f"{folder} is not a corpus, it has no {MANIFEST}: give a folder that "
            f"micronet corpus build wrote{instead}"
        ) from None
    except ValueError as error:
        raise _damaged(folder, f"not JSON: {error}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise CorpusError(
            f"{folder} is not a corpus, its {MANIFEST} is not of the format {FORMAT}: give a "
            "folder that micronet corpus build wrote"
        )
    return record


def _damaged(folder: Path, why: str) -> CorpusError:
    return CorpusError(
        f"{folder / MANIFEST} is damaged ({why}): delete the folder and build it again"
    )
