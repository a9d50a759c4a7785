"""Checkpoints: one safetensors file each, complete or absent, read without pickle."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from micronet_lm.errors import RunError
from micronet_lm.files import replacing
from micronet_lm.model import LanguageModel
from micronet_lm.model.integers import (
    file_names,
    is_stored,
    module_names,
    state_of_stored,
    stored_tensors,
)
from micronet_lm.runs import FORMAT, PREFIX, Progress, open_checkpoint
from micronet_lm.runs.checkpoint import checksum_entries


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The contents of a checkpoint: tensors by dotted name, and the progress."""

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
    # JSON keeps doubles exactly, so the progress is restored bit-exactly as well.
    text = json.dumps(vars(progress))
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {"format": FORMAT, "progress": text, **checksum_entries(plain, text)}
    try:
        with replacing(path) as temporary:
            save_file(plain, temporary, metadata=metadata)
    except (OSError, SafetensorError) as error:
        raise RunError(
            f"{path} cannot be written ({error}): check free disk space and the folder's "
            "permissions; the run resumes from its last saved checkpoint"
        ) from error


def read_checkpoint(path: Path, *, prefix: str = "") -> Checkpoint:
    """Read a checkpoint, or only its tensors that begin with `prefix`."""
    with open_checkpoint(path, framework="pt") as reader:
        progress = reader.progress
        wanted = sorted(name for name in reader.names if name.startswith(prefix))
        return Checkpoint(tensors={n: reader.tensor(n) for n in wanted}, progress=progress)


def model_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return a module's parameters and buffers under `model.…`."""
    return {f"{PREFIX}{name}": tensor for name, tensor in file_names(module.state_dict()).items()}


def result_tensors(model: LanguageModel) -> dict[str, Tensor]:
    """Return the tensors of a finished model under `model.…`, quantized ones as integers."""
    return {f"{PREFIX}{name}": tensor for name, tensor in stored_tensors(model).items()}


def load_model(model: LanguageModel, checkpoint: Checkpoint, origin: Path) -> None:
    """Load a checkpoint's weights into a model of the same shape."""
    state = checkpoint.part("model")
    state = state_of_stored(model, state) if is_stored(state) else module_names(state)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        detail = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise RunError(f"the checkpoint {origin} has another shape: {detail}") from None
