"""The checksums of a stage's outputs, kept in its record: damage between two stages is noticed."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from micronet_lm.checksum import checksum
from micronet_lm.errors import PipelineError

_KINDS = frozenset({".html", ".json", ".jsonl", ".md", ".safetensors", ".tsv", ".yaml"})
"""Files with a checksum; arrays of ids and labels have hashes in the manifest beside them."""


def output_sums(folder: Path) -> dict[str, str]:
    """Return the checksums of the files that a finished stage left in its folder."""
    files = (
        file
        for file in sorted(folder.iterdir())
        if file.suffix in _KINDS and not file.name.startswith(".") and file.is_file()
    )
    return {file.name: file_checksum(file) for file in files}


def file_checksum(file: Path) -> str:
    """Return the checksum of a file."""
    if not file.stat().st_size:
        return checksum(b"")
    return checksum(np.fromfile(file, np.uint8))


def have_vanished(folder: Path, sums: Mapping[str, str]) -> bool:
    """Return whether nothing is left of a finished stage's outputs."""
    if sums:
        return not any((folder / name).exists() for name in sums)
    return not folder.is_dir() or not any(folder.iterdir())  # a record of version 0.1


def check_outputs(folder: Path, sums: Mapping[str, str], stage: str) -> int:
    """Refuse a file that is not as its stage wrote it; return how many were compared.

    A file that was removed to save room is not missed here, but where it is needed.
    """
    compared = 0
    for name, expected in sums.items():
        file = folder / name
        if not file.is_file():
            continue
        if file_checksum(file) != expected:
            raise PipelineError(
                f"{file} is not as the stage {stage} wrote it, it is damaged or was changed: "
                f"restore it, or move {folder} away to make it again"
            )
        compared += 1
    return compared
