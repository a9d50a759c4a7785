"""One shard: labels of consecutive tokens, as NumPy files that are written atomically.

`00007.ids.npy` (n, K) has the words, `00007.probabilities.npy` (n, K) the half-precision
probabilities of `top-k` labels (`sampled` ones all have the weight 1/K), and `00007.json`, written
last, the counts and hashes: a shard without it is incomplete.
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.compression.softlabels.manifest import Record, Settings, Summary
from micronet_lm.corpus.npy import npy_header
from micronet_lm.errors import LabelsError
from micronet_lm.files import file_sha256, open_regular, read_json, replacing, write_text

HALF = np.dtype(np.float16)

IDS, PROBABILITIES = "ids", "probabilities"


class ShardRecord(Record):
    """Counts and hashes of a complete shard."""

    hits: int
    """Number of tokens whose true next word is among the labels."""
    mass: float
    """Sum over its tokens of the teacher's probability of the labelled words."""
    sha256: dict[str, str]
    """Hash of each of its arrays' files."""


def arrays(settings: Settings) -> dict[str, np.dtype[Any]]:
    """Return the types of a shard's arrays by name."""
    with_values = {PROBABILITIES: HALF} if settings.method == "top-k" else {}
    return {IDS: settings.dtype, **with_values}


def write_shard(
    folder: Path, number: int, values: dict[str, NDArray[Any]], *, hits: int, mass: float
) -> None:
    """Write a shard's arrays, then its record."""
    hashes = {}
    for name, array in values.items():
        header, body = npy_header(array.dtype, *array.shape), np.ascontiguousarray(array).data
        digest = hashlib.sha256(header)
        digest.update(body)
        hashes[name] = digest.hexdigest()
        place = _array_file(folder, number, name)
        with replacing(place) as temporary, temporary.open("wb") as file:
            file.write(header)
            file.write(body)
    record = ShardRecord(hits=hits, mass=mass, sha256=hashes)
    write_text(_record_file(folder, number), record.model_dump_json() + "\n")


def is_finished(folder: Path, number: int) -> bool:
    """Return whether a shard is complete."""
    return _record_file(folder, number).is_file()


def read_record(folder: Path, number: int) -> ShardRecord:
    """Read the record of a complete shard."""
    path = _record_file(folder, number)
    try:
        return ShardRecord.model_validate(read_json(path), strict=True)
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error).splitlines()[0]) from None


def summary_of(folder: Path, settings: Settings) -> Summary:
    """Return the summary of all shards."""
    records = [read_record(folder, number) for number in range(settings.shards)]
    digest = hashlib.sha256(settings.model_dump_json().encode())
    for record in records:
        digest.update(record.model_dump_json().encode())
    return Summary(
        hits=sum(record.hits for record in records),
        mass=sum(record.mass for record in records),
        fingerprint=digest.hexdigest(),
    )


def open_array(folder: Path, settings: Settings, number: int, name: str) -> NDArray[Any]:
    """Map an array (n, K) of a shard from disk."""
    path = _array_file(folder, number, name)
    dtype, shape = arrays(settings)[name], (len(settings.span(number)), settings.count)
    offset = len(npy_header(dtype, *shape))
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)


def check_hash(folder: Path, number: int, name: str) -> None:
    """Refuse an array whose bytes are not those that were written."""
    path = _array_file(folder, number, name)
    if file_sha256(path) != read_record(folder, number).sha256.get(name):
        raise _damaged(path, "other bytes of the same length")


def check_array(folder: Path, settings: Settings, number: int, name: str) -> None:
    """Refuse an array whose header or size does not match the manifest."""
    path = _array_file(folder, number, name)
    dtype, shape = arrays(settings)[name], (len(settings.span(number)), settings.count)
    header = npy_header(dtype, *shape)
    try:
        with open_regular(path) as file:
            same = file.read(len(header)) == header
        size = path.stat().st_size
    except FileNotFoundError:
        raise _damaged(path, "missing") from None
    if not same or size != len(header) + shape[0] * shape[1] * dtype.itemsize:
        raise _damaged(path, f"not {shape[0]:,} x {shape[1]} values of type {dtype}")


def leftovers(folder: Path) -> list[Path]:
    """Return the temporary files of a killed writer."""
    return [*folder.glob(".*.npy.*.tmp"), *folder.glob(".*.json.*.tmp")]


def _array_file(folder: Path, number: int, name: str) -> Path:
    return folder / f"{number:05}.{name}.npy"


def _record_file(folder: Path, number: int) -> Path:
    return folder / f"{number:05}.json"


def _damaged(path: Path, why: str) -> LabelsError:
    return LabelsError(
        f"{path} does not match its manifest ({why}): delete the folder and make the soft labels "
        "again with micronet soft-labels"
    )
