"""The one reader of checkpoints: a safetensors file whose header holds the run's progress.

Tensors are NumPy arrays or, with `framework="pt"`, torch tensors. Each is compared with its
checksum when it is read; checkpoints of version 0.1 have none.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from micronet_lm.checksum import checksum
from micronet_lm.errors import RunError
from micronet_lm.strict_json import parse_json

FORMAT = "micronet-checkpoint-2"
"""Marks the header of a checkpoint, which has checksums."""

WITHOUT_CHECKSUMS = "micronet-checkpoint-1"
"""Marks the header of a checkpoint of version 0.1."""

PREFIX = "model."
"""Prefix of the names of a model's tensors in a checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of a run, besides its tensors."""

    step: int = 0
    """Number of finished steps."""

    best_loss: float | None = None
    """Smallest validation loss so far."""

    best_step: int | None = None
    """Number of finished steps at the smallest validation loss."""

    pending_loss: float = 0.0
    """Sum of the losses that the metrics have not reported yet."""

    pending_steps: int = 0
    """Number of these losses."""

    pending_numbers: Mapping[str, float] = field(default_factory=dict)
    """Sums of the objective's other numbers over the same steps."""

    seconds: float = 0.0
    """Time spent in training, interruptions excluded."""


CHECKSUMS = "checksums"
"""Key of the header with the checksum of each tensor and, under an empty name, of the progress."""


def tensor_checksum(tensor: Any) -> str:
    """Return the checksum of a NumPy or torch tensor: its type, its shape and its bytes."""
    kind = str(tensor.dtype).removeprefix("torch.")
    whole = f"{kind} {list(tensor.shape)} {checksum(_bytes(tensor))}"
    return checksum(whole.encode())


def _bytes(tensor: Any) -> NDArray[np.uint8]:
    flat = tensor.reshape(-1)
    if isinstance(flat, np.ndarray):
        return np.ascontiguousarray(flat).view(np.uint8)
    # NumPy has no bfloat16; whoever has a torch tensor has imported torch.
    return np.asarray(flat.contiguous().view(sys.modules["torch"].uint8))


def checksum_entries(tensors: Mapping[str, Any], progress: str) -> dict[str, str]:
    """Return the entries of a header that hold the checksums."""
    sums = {name: tensor_checksum(tensor) for name, tensor in tensors.items()}
    return {CHECKSUMS: json.dumps({"": checksum(progress.encode()), **sums})}


class CheckpointReader:
    """An open checkpoint: tensors by name, read on request."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self._file = path, file
        self.names: frozenset[str] = frozenset(file.keys())
        """Names of all tensors, those of the model with `PREFIX`."""
        self._metadata: dict[str, Any] = file.metadata() or {}
        self._sums: dict[str, str] | None = None
        if self._metadata.get("format") == FORMAT:
            self._sums = parse_json(self._metadata[CHECKSUMS], "its list of checksums")
        if self._sums is not None and self._sums.keys() - {""} != self.names:
            raise self._damaged("its tensors are not those that were written")

    @property
    def checked(self) -> bool:
        """Whether it has checksums."""
        return self._sums is not None

    @property
    def progress(self) -> Progress:
        """Progress from the header; a file of another format is refused."""
        if self._metadata.get("format") not in (FORMAT, WITHOUT_CHECKSUMS):
            raise RunError(f"{self.path} is not a checkpoint of this program (format {FORMAT})")
        text: str = self._metadata["progress"]
        if self._sums is not None and self._sums.get("") != checksum(text.encode()):
            raise self._damaged("its progress does not have its checksum")
        return Progress(**parse_json(text, "its progress"))

    def tensor(self, name: str) -> Any:
        """Read a tensor by its full name; one with another checksum is refused."""
        tensor = self._file.get_tensor(name)
        if self._sums is not None and self._sums.get(name) != tensor_checksum(tensor):
            raise self._damaged(f"the tensor {name} does not have its checksum")
        return tensor

    def model_tensor(self, name: str) -> Any:
        """Read a tensor of the model by its name without `PREFIX`; a missing one is refused."""
        if PREFIX + name not in self.names:
            raise RunError(f"{self.path} does not match its recipe: it has no {PREFIX}{name}")
        return self.tensor(PREFIX + name)

    def _damaged(self, why: str) -> RunError:
        return RunError(
            f"{self.path} is damaged ({why}): restore a copy, or remove it and run the command "
            "that made it again"
        )


@contextmanager
def open_checkpoint(
    path: Path, *, framework: Literal["numpy", "pt"] = "numpy"
) -> Iterator[CheckpointReader]:
    """Open a checkpoint; a missing or damaged file is a `RunError`."""
    if not path.is_file():
        raise RunError(f"{path} does not exist; has the run saved a checkpoint yet?")
    try:
        with safe_open(path, framework=framework) as file:
            yield CheckpointReader(path, file)
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise RunError(f"{path} is damaged ({error}); train again or restore a copy") from None
