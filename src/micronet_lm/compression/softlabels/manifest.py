"""The manifest of soft labels: their teacher, text and kind, and whether they are complete.

The manifest is written when the work begins, so that a folder belongs to one teacher and one text,
and again, with a summary, when the last shard is complete.
"""

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from micronet_lm.errors import LabelsError
from micronet_lm.files import read_json, write_text

MANIFEST = "manifest.json"

Method = Literal["top-k", "sampled"]


def describe(method: Method, count: int) -> str:
    """Return the name of a kind of labels, in two words."""
    return f"top {count}" if method == "top-k" else f"{count} sampled"


class Record(BaseModel):
    """Base of the JSON files: immutable, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Settings(Record):
    """The settings that determine every byte of the labels."""

    method: Method
    """`top-k` words with their probabilities, or `sampled` words with equal weights."""
    count: int = Field(ge=1)
    """Labels per token (K)."""
    seed: int = Field(ge=0)
    """Seed of the draws."""
    teacher: str
    """Fingerprint of the teacher's weights and shape."""
    corpus: str
    """Fingerprint of the corpus."""
    vocabulary: int = Field(ge=2)
    """Number of words of the corpus."""
    tokens: int = Field(ge=1)
    """Number of labelled tokens: all of the training split but the last."""
    shard_tokens: int = Field(ge=1)
    """Tokens per shard; the last shard may have fewer."""

    @property
    def shards(self) -> int:
        """Number of shards."""
        return -(-self.tokens // self.shard_tokens)

    def span(self, shard: int) -> range:
        """Return the tokens that a shard labels."""
        low = shard * self.shard_tokens
        return range(low, min(low + self.shard_tokens, self.tokens))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest type that holds the words' ids."""
        return np.dtype(np.min_scalar_type(self.vocabulary - 1))


class Summary(Record):
    """Facts about complete labels."""

    hits: int = Field(ge=0)
    """Number of tokens whose true next word is among the labels."""
    mass: float
    """Sum over all tokens of the teacher's probability of the labelled words."""
    fingerprint: str
    """Hash of the settings and all shards."""


class Manifest(Record):
    """The settings, and the summary once the labels are complete."""

    format: Literal["micronet-soft-labels"] = "micronet-soft-labels"
    """Name of the format."""
    version: Literal[1] = 1
    """Version of the folder's layout."""
    settings: Settings
    """Settings of the labels."""
    summary: Summary | None
    """None while shards are missing."""

    def save(self, folder: Path) -> None:
        """Write the manifest."""
        write_text(folder / MANIFEST, self.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Manifest":
        """Read the manifest of a folder; refuse unknown, missing and invalid entries."""
        try:
            return cls.model_validate(read_json(folder / MANIFEST), strict=True)
        except (FileNotFoundError, NotADirectoryError):
            raise LabelsError(
                f"{folder} has no soft labels (no {MANIFEST}): make them with "
                f"micronet soft-labels RUN --out {folder}"
            ) from None
        except ValidationError as error:
            finding = error.errors()[0]
            where = ".".join(map(str, finding["loc"])) or "the file"
            raise _damaged(folder, f"{where}: {finding['msg'].lower()}") from None
        except ValueError as error:
            raise _damaged(folder, str(error)) from None


def _damaged(folder: Path, why: str) -> LabelsError:
    return LabelsError(
        f"{folder / MANIFEST} is damaged or not of soft labels ({why}): give a folder that "
        "micronet soft-labels wrote"
    )
