"""Checkpoints: one safetensors file each, complete or absent, read without pickle."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from micronet_lm.errors import RunError
from micronet_lm.files import replacing
from micronet_lm.model import LanguageModel
from micronet_lm.model.integers import is_stored, state_of_stored, stored_tensors

FORMAT = "micronet-checkpoint-1"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is, beside its tensors."""

    step: int = 0
    """Finished steps."""

    best_loss: float | None = None
    """Smallest validation loss so far."""

    best_step: int | None = None
    """Finished steps when it was reached."""

    pending_loss: float = 0.0
    """Sum of the losses that no line of the metrics has reported yet."""

    pending_steps: int = 0
    """How many losses that are."""

    pending_numbers: Mapping[str, float] = field(default_factory=dict)
    """Sums of what else the objective reports, over the same steps."""

    seconds: float = 0.0
    """Time spent in training, over all sittings."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a file holds: tensors by dotted name, and the progress."""

    tensors: dict[str, Tensor]
    progress: Progress = field(default_factory=Progress)

    def part(self, prefix: str) -> dict[str, Tensor]:
        """Return the tensors whose names begin with `prefix.`, without it."""
        return part_of(self.tensors, prefix)


def part_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with `prefix.`, without it."""
    lead = prefix + "."
    return {name.removeprefix(lead): t for name, t in tensors.items() if name.startswith(lead)}


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], progress: Progress) -> None:
    """Write a checkpoint under a temporary name, then rename it."""
    # JSON keeps doubles exactly, so the progress survives to the bit as well.
    metadata = {"format": FORMAT, "progress": json.dumps(vars(progress))}
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        with replacing(path) as temporary:
            save_file(plain, temporary, metadata=metadata)
    except (OSError, SafetensorError) as error:
        raise RunError(
            f"{path} cannot be written ({error}): see to the space on the disk and to the folder's "
            "permissions; what was saved before is still there, and the run goes on from it"
        ) from error


def read_checkpoint(path: Path, *, prefix: str = "") -> Checkpoint:
    """Read a checkpoint, or only its tensors that begin with `prefix`."""
    if not path.is_file():
        raise RunError(f"{path} does not exist; has the run saved a checkpoint yet?")
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, Any] = file.metadata() or {}
            tensors = {n: file.get_tensor(n) for n in file.keys() if n.startswith(prefix)}  # noqa: SIM118
        if metadata.get("format") != FORMAT:
            raise RunError(f"{path} is not a checkpoint of this program (format {FORMAT})")
        progress = Progress(**json.loads(metadata["progress"]))
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise RunError(f"{path} is damaged ({error}); train again or restore a copy") from None
    return Checkpoint(tensors=tensors, progress=progress)


def model_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return a module's parameters and buffers under `model.…`."""
    return {f"model.{name}": tensor for name, tensor in module.state_dict().items()}


def result_tensors(model: LanguageModel) -> dict[str, Tensor]:
    """Return what a finished model consists of, under `model.…`: integers where it has integers."""
    return {f"model.{name}": tensor for name, tensor in stored_tensors(model).items()}


def load_model(model: LanguageModel, checkpoint: Checkpoint, origin: Path) -> None:
    """Put a checkpoint's weights into a model of the same shape."""
    state = checkpoint.part("model")
    if is_stored(state):
        state = state_of_stored(model, state)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        detail = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise RunError(f"the checkpoint {origin} has another shape: {detail}") from None
