"""The container of a packed file: safetensors, read strictly.

The safetensors package would read it too, but its errors say little, and it does not promise to
refuse a duplicate name. Every number is checked against the file's length before it is used.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact.metadata import LONGEST_METADATA, refuse, strict_json
from micronet_lm.checksum import SUM_BYTES, checksum_bytes
from micronet_lm.errors import ArtifactError
from micronet_lm.files import open_regular
from micronet_lm.strict_json import short

LENGTH = 8
"""Size of the field at the beginning that holds the header's length, in bytes."""
LONGEST_HEADER = 16 << 20
CHECKSUM = "checksum"
"""Name of the last tensor, which holds the checksum of all bytes before it."""
_TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "U8": np.dtype("u1")}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A tensor of the file."""

    dtype: str
    """`F32` or `U8`."""
    shape: tuple[int, ...]
    begin: int
    """Its first byte, from the beginning of the file."""
    end: int
    """The byte after its last."""

    @property
    def bytes(self) -> int:
        """Its length in bytes."""
        return self.end - self.begin


@dataclass(frozen=True, kw_only=True, eq=False)
class Container:
    """A file's tensors as bytes, and its metadata as text."""

    path: Path
    bytes: int
    """Length of the file."""
    parts: Mapping[str, Part]
    metadata: str
    checked: bool
    """Whether it has a checksum, which was right; files of version 0.1 have none."""
    _data: memoryview

    def everything(self) -> memoryview:
        """Return the bytes of the whole file."""
        return self._data

    def array(self, name: str) -> NDArray[Any]:
        """Return a tensor as a read-only view of the file's bytes."""
        part = self.parts[name]
        kind = _TYPES[part.dtype]
        count = part.bytes // kind.itemsize
        if not count:
            return np.empty(part.shape, kind)
        return np.frombuffer(self._data, kind, count, part.begin).reshape(part.shape)


def check_there(path: Path) -> None:
    """Refuse a path that is not a file."""
    if path.is_dir():
        raise ArtifactError(
            f"{path} is a folder, not a packed file: make one of a run with 'micronet pack'"
        )
    if not path.exists():
        raise ArtifactError(f"there is no file {path}: make one with 'micronet pack RUN -o {path}'")
    if not path.is_file():
        raise ArtifactError(f"{path} is not a regular file, such as a pipe or a device: give one")


def open_container(path: Path) -> Container:
    """Read a file and check its header, all lengths, all offsets and its checksum."""
    check_there(path)
    with open_regular(path) as file:
        data = file.read()  # not mapped: a file that someone truncates would end the process
    if (size := len(data)) < LENGTH:
        refuse(f"it has {size} bytes, too few for a header")
    length = int.from_bytes(data[:LENGTH], "little")
    if length > LONGEST_HEADER or length > size - LENGTH:
        refuse(f"its header claims {length} bytes of {size}: it is not safetensors, or truncated")
    try:
        text = data[LENGTH : LENGTH + length].decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(f"byte {error.start} of its header is not UTF-8")
    if not text.startswith("{"):
        refuse("its header does not begin with a brace: it is not a safetensors file")
    header = strict_json(text, "its header")
    metadata = _metadata(header.pop("__metadata__", None))
    begin = LENGTH + length
    parts = {name: _part(name, entry, begin) for name, entry in header.items()}
    _check_places(parts, begin, size)
    checked = _check_sum(parts.pop(CHECKSUM, None), data)
    return Container(
        path=path,
        bytes=size,
        parts=parts,
        metadata=metadata,
        checked=checked,
        _data=memoryview(data),
    )


def write_container(
    path: Path, parts: Mapping[str, NDArray[Any]], metadata: str, *, with_checksum: bool
) -> None:
    """Write tensors and metadata as safetensors: floats first, by name, the checksum last."""
    arrays = sorted(parts.items(), key=lambda item: (item[1].dtype.itemsize == 1, item[0]))
    header: dict[str, Any] = {"__metadata__": {"micronet": metadata}}
    at = 0
    for name, array in arrays:
        kind = next(kind for kind, dtype in _TYPES.items() if dtype == array.dtype)
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [at, at := at + array.nbytes],
        }
    if with_checksum:
        header[CHECKSUM] = {
            "dtype": "U8",
            "shape": [SUM_BYTES],
            "data_offsets": [at, at + SUM_BYTES],
        }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % LENGTH)
    data = b"".join(
        [len(text).to_bytes(LENGTH, "little"), text, *(array.tobytes() for _, array in arrays)]
    )
    with path.open("wb") as file:
        file.write(data)
        if with_checksum:
            file.write(checksum_bytes(data))


def _check_sum(part: Part | None, data: bytes) -> bool:
    """Compare the file's bytes with its checksum; return whether it has one."""
    if part is None:
        return False
    if (part.dtype, part.shape, part.end) != ("U8", (SUM_BYTES,), len(data)):
        refuse("its tensor checksum is not the file's last 8 bytes")
    if checksum_bytes(memoryview(data)[:-SUM_BYTES]) != data[-SUM_BYTES:]:
        refuse("its bytes do not have the checksum that was written with them: it is damaged")
    return True


def _metadata(record: Any) -> str:
    if not isinstance(record, dict) or not isinstance(record.get("micronet"), str):
        refuse("it has no metadata 'micronet': it is another kind of safetensors file")
    if len(record) > 1:
        refuse("its metadata must have only the entry 'micronet'")
    text = str(record["micronet"])
    if (size := len(text.encode("utf-8"))) > LONGEST_METADATA:
        refuse(f"its metadata have {size:,} bytes, more than the {LONGEST_METADATA:,} allowed")
    return text


def _part(name: str, entry: Any, base: int) -> Part:
    what = f"its tensor {short(name)}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        refuse(f"{what} must be described by dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _TYPES:
        refuse(f"{what} must have the dtype F32 or U8, got {short(dtype)}")
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or any(type(n) is not int or n < 0 for n in numbers):
            refuse(f"{what} must have whole numbers as sizes, got {short(numbers)}")
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        refuse(f"{what} must have its begin and end as offsets, got {short(offsets)}")
    if len(shape) > 2:
        refuse(f"{what} must have at most 2 dimensions, got {len(shape)}")
    count = 1
    for number in shape:
        count *= number
    if count * _TYPES[dtype].itemsize != offsets[1] - offsets[0]:
        refuse(f"{what} of shape {short(shape)} does not fill its bytes {short(offsets)}")
    return Part(dtype=dtype, shape=tuple(shape), begin=base + offsets[0], end=base + offsets[1])


def _check_places(parts: Mapping[str, Part], begin: int, size: int) -> None:
    """Refuse parts that overlap, leave gaps or do not end at the file's end."""
    at = begin
    for name, part in sorted(parts.items(), key=lambda item: (item[1].begin, item[1].end)):
        if part.begin != at:
            refuse(f"its tensor {short(name)} does not begin where the one before it ends")
        at = part.end
    if at != size:
        refuse(f"its tensors end at byte {at}, but the file has {size}: it is truncated or damaged")
