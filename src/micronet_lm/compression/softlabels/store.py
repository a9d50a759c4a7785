"""Read soft labels for training: windows of memory-mapped shards, aligned with the text."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from micronet_lm.compression.softlabels.manifest import (
    MANIFEST,
    Manifest,
    Settings,
    Summary,
    describe,
)
from micronet_lm.compression.softlabels.shards import (
    IDS,
    PROBABILITIES,
    arrays,
    check_array,
    check_hash,
    open_array,
    read_record,
    summary_of,
)
from micronet_lm.config import DistillConfig
from micronet_lm.corpus import Corpus
from micronet_lm.errors import LabelsError

OPEN_ARRAYS = 64
"""Largest number of arrays mapped at a time."""


class Labels(NamedTuple):
    """The labels of a batch's tokens."""

    words: NDArray[np.int64]
    """(B, T, K) the labelled words."""

    weights: NDArray[np.float32]
    """(B, T, K) their probabilities or weights; not normalized."""


class SoftLabels:
    """A complete folder of soft labels; opening it checks every file's header."""

    def __init__(self, path: Path, settings: Settings, summary: Summary) -> None:
        self.path, self.settings, self.summary = path, settings, summary
        for name in arrays(settings):
            for number in range(settings.shards):
                check_array(path, settings, number, name)
        # A mapped file is an open file, of which a process may have about a thousand.
        self._array = lru_cache(OPEN_ARRAYS)(self._open_array)
        self._checked: set[tuple[int, str]] = set()

    @classmethod
    def open(cls, path: Path | str) -> "SoftLabels":
        """Open a folder that `micronet soft-labels` has finished."""
        path = Path(path)
        manifest = Manifest.load(path)
        if manifest.summary is None:
            raise LabelsError(
                f"the soft labels {path} are incomplete: resume them with the micronet soft-labels "
                "command that started them"
            )
        return cls(path, manifest.settings, manifest.summary)

    @property
    def fingerprint(self) -> str:
        """Hash of all labels and their settings."""
        return self.summary.fingerprint

    def windows(self, starts: Sequence[int], length: int, count: int | None = None) -> Labels:
        """Return the first `count` labels of each of `length` tokens from each start.

        Label i predicts the word after token i, so a batch's labels begin where its inputs begin.
        """
        count = self.settings.count if count is None else count
        words = self._windows(IDS, starts, length, count).astype(np.int64)
        if self.settings.method == "sampled":
            return Labels(words, np.full(words.shape, 1 / count, dtype=np.float32))
        return Labels(words, self._windows(PROBABILITIES, starts, length, count).astype(np.float32))

    def _open_array(self, number: int, name: str) -> NDArray[Any]:
        """Map an array; its hash is checked the first time."""
        if (number, name) not in self._checked:
            check_hash(self.path, number, name)
            self._checked.add((number, name))
        return open_array(self.path, self.settings, number, name)

    def check_hashes(self) -> None:
        """Compare every array with its hash, and the shards' records with the manifest's."""
        if summary_of(self.path, self.settings) != self.summary:
            raise LabelsError(
                f"{self.path / MANIFEST} does not match the records of its shards: delete the "
                "folder and make the soft labels again with micronet soft-labels"
            )
        for name in arrays(self.settings):
            for number in range(self.settings.shards):
                check_hash(self.path, number, name)

    def check_corpus(self, corpus: Corpus) -> None:
        """Refuse another corpus than that of the labels."""
        settings = self.settings
        words, tokens = len(corpus.vocabulary), corpus.tokens("train") - 1
        if settings.vocabulary != words:
            raise LabelsError(
                f"the soft labels {self.path} have another vocabulary: {settings.vocabulary:,} "
                f"words, but {corpus.path} has {words:,}; make labels from this corpus"
            )
        if settings.tokens != tokens:
            raise LabelsError(
                f"the soft labels {self.path} have another length: {settings.tokens:,} tokens, "
                f"but the training split of {corpus.path} needs {tokens:,}; make labels from this "
                "corpus"
            )
        if settings.corpus != corpus.fingerprint:
            raise LabelsError(
                f"the soft labels {self.path} are of another corpus (fingerprint "
                f"{settings.corpus[:12]}, that of {corpus.path} is {corpus.fingerprint[:12]}); "
                "make labels from this corpus"
            )
        # Labels of the wrong tokens would be learned without any error.
        span = settings.span(0)
        following = corpus.split("train")[span.start + 1 : span.stop + 1]
        hits = int((self._array(0, IDS) == following[:, None]).any(axis=1).sum())
        if hits != (recorded := read_record(self.path, 0).hits):
            raise LabelsError(
                f"the soft labels {self.path} belong to other tokens ({hits:,} true words among "
                f"the first shard's labels, not {recorded:,}): delete the folder and make them "
                "again"
            )

    def check_recipe(self, config: DistillConfig) -> None:
        """Refuse a recipe that needs other labels."""
        settings = self.settings
        # The likeliest few of the top k are themselves a top k; a part of the draws is biased.
        enough = (
            config.count <= settings.count
            if settings.method == "top-k"
            else config.count == settings.count
        )
        if config.method != settings.method or not enough:
            raise LabelsError(
                f"the soft labels {self.path} are the {describe(settings.method, settings.count)} "
                f"words, but the recipe needs the {describe(config.method, config.count)}: change "
                "distill.method and its number, or make other labels"
            )

    def _windows(self, name: str, starts: Sequence[int], length: int, count: int) -> NDArray[Any]:
        size = self.settings.shard_tokens
        windows = np.empty((len(starts), length, count), dtype=arrays(self.settings)[name])
        for window, start in zip(windows, starts, strict=True):
            if not 0 <= start <= self.settings.tokens - length:
                raise IndexError(f"labels {start} to {start + length} of {self.settings.tokens}")
            done = 0
            while done < length:
                shard, place = divmod(start + done, size)
                part = self._array(shard, name)[place : place + length - done, :count]
                window[done : done + len(part)] = part
                done += len(part)
        return windows
