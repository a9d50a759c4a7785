"""The last file that is written of a corpus: what it is, how it was made, how to know it whole."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypedDict

from micronet_lm.corpus.splits import SPLITS, Ratio
from micronet_lm.errors import CorpusError
from micronet_lm.files import write_text

MANIFEST = "manifest.json"
VOCABULARY = "vocabulary.tsv"
FORMAT = "micronet-corpus"
VERSION = 1


def split_file(split: str) -> str:
    """Give the name of the file with a split's ids."""
    return f"{split}.npy"


FILES = (*map(split_file, SPLITS), VOCABULARY)
"""The files that a manifest vouches for."""


class FileRecord(TypedDict):
    """How to know a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the user asked for; two corpora with the same settings and text are the same."""

    source: str
    """`python-docs`, `wikitext-2`, `wikitext-103`, or a path or pattern as it was given."""
    tokenizer: str
    """The name of the tokenizer."""
    min_count: int
    """Rarer words became `<unk>`."""
    max_vocabulary: int | None
    """The most entries the vocabulary might have, None for no limit."""
    split: Ratio | None
    """The shares of train, valid and test; None where the source has splits of its own."""


@dataclass(frozen=True, kw_only=True)
class Manifest(Settings):
    """A complete corpus in numbers."""

    dtype: str
    """The type of the ids."""
    words: int
    """The size of the vocabulary."""
    tokens: Mapping[str, int]
    """The tokens of each split."""
    unknown: Mapping[str, int]
    """How many of them are `<unk>`."""
    text_bytes: Mapping[str, int]
    """The bytes of text each split was made of."""
    documents: Mapping[str, int] | None
    """The documents of each split, where the source is made of documents."""
    files: Mapping[str, FileRecord]
    """Size and hash of every other file of the corpus."""
    fingerprint: str
    """One hash for all of it: the same ids, words and tokenizer give the same."""

    def save(self, folder: Path) -> None:
        """Write the manifest; with it the corpus is complete."""
        record = {"format": FORMAT, "version": VERSION, **asdict(self)}
        write_text(folder / MANIFEST, json.dumps(record, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Manifest":
        """Read the manifest of a corpus folder, strictly."""
        record = _read(folder)
        if (version := record.pop("version", None)) != VERSION:
            raise CorpusError(
                f"the corpus {folder} has format version {version}, this program reads version "
                f"{VERSION}: build it again with --force"
            )
        del record["format"]
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
        """What the user asked for when the corpus was built."""
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


def fingerprint(files: Mapping[str, FileRecord], tokenizer: str) -> str:
    """Give one hash for a corpus: over the hashes of its files and the tokenizer's name."""
    lines = [f"{name} {files[name]['sha256']}\n" for name in FILES]
    return hashlib.sha256("".join([*lines, f"tokenizer {tokenizer}\n"]).encode()).hexdigest()


def is_corpus(folder: Path) -> bool:
    """Whether a folder has a manifest of ours, of whatever version."""
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
        record = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        if any((folder / name).exists() for name in FILES):
            raise CorpusError(
                f"the corpus {folder} is half-written, it has no {MANIFEST}: build it again "
                "with --force"
            ) from None
        raise CorpusError(
            f"{folder} is not a corpus, it has no {MANIFEST}: give a folder that "
            "micronet corpus build wrote"
        ) from None
    except (ValueError, RecursionError) as error:
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
