"""The one reader of checkpoints: a safetensors file whose header holds the run's progress.

Tensors are NumPy arrays or, with `framework="pt"`, torch tensors.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open

from micronet_lm.errors import RunError

FORMAT = "micronet-checkpoint-1"
"""Marks the header of a checkpoint."""

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


class CheckpointReader:
    """An open checkpoint: tensors by name, read on request."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self._file = path, file
        self.names: frozenset[str] = frozenset(file.keys())
        """Names of all tensors, those of the model with `PREFIX`."""

    @property
    def progress(self) -> Progress:
        """Progress from the header; a file of another format is refused."""
        metadata: dict[str, Any] = self._file.metadata() or {}
        if metadata.get("format") != FORMAT:
            raise RunError(f"{self.path} is not a checkpoint of this program (format {FORMAT})")
        return Progress(**json.loads(metadata["progress"]))

    def tensor(self, name: str) -> Any:
        """Read a tensor by its full name."""
        return self._file.get_tensor(name)

    def model_tensor(self, name: str) -> Any:
        """Read a tensor of the model by its name without `PREFIX`; a missing one is refused."""
        if PREFIX + name not in self.names:
            raise RunError(f"{self.path} does not match its recipe: it has no {PREFIX}{name}")
        return self._file.get_tensor(PREFIX + name)


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
