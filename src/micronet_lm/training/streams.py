"""The states that contiguous streams carry from step to step, and their place in checkpoints."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from micronet_lm.model import StreamState
from micronet_lm.training.processes import Processes


def stream_tensors(parts: Sequence[StreamState], processes: Processes) -> dict[str, Tensor]:
    """Put everybody's streams together in the order of the batch's rows.

    `parts` are the states of a process's share of the batch, part by part. The result does not
    tell how many parts and processes there were.
    """
    tensors = {"seen": torch.tensor(parts[0].seen)}
    for layer in range(len(parts[0].keys)):
        keys = torch.cat([part.keys[layer] for part in parts])
        values = torch.cat([part.values[layer] for part in parts])
        tensors[f"keys.{layer}"] = processes.gather(keys)
        tensors[f"values.{layer}"] = processes.gather(values)
    return tensors


def load_streams(
    tensors: Mapping[str, Tensor], processes: Processes, *, rows: int, parts: int
) -> list[StreamState]:
    """Take this process's rows out of what `stream_tensors` gave, `rows` a part."""
    layers = range(sum(1 for name in tensors if name.startswith("keys.")))
    states = []
    for part in range(parts):
        first = (processes.rank * parts + part) * rows
        own = slice(first, first + rows)
        keys = tuple(tensors[f"keys.{layer}"][own].to(processes.device) for layer in layers)
        values = tuple(tensors[f"values.{layer}"][own].to(processes.device) for layer in layers)
        states.append(StreamState(keys=keys, values=values, seen=int(tensors["seen"])))
    return states
