"""The state that contiguous streams pass from step to step, and its form in checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from micronet_lm.model import Memory, StreamState
from micronet_lm.training.processes import Processes


@dataclass(frozen=True, kw_only=True)
class Stream:
    """State and memory of some sequences of a batch."""

    state: StreamState
    """State that the next hidden states depend on."""

    memory: Memory | None
    """Contents of the cache, if the model has one."""


def stream_tensors(parts: Sequence[Stream], processes: Processes) -> dict[str, Tensor]:
    """Return the streams of all processes in the order of the batch's rows.

    `parts` are the streams of a process's share of the batch, part by part. The result does not
    depend on the number of parts and processes.
    """
    by_name = [_rows_of(part) for part in parts]
    tensors = {
        name: processes.gather(torch.cat([part[name] for part in by_name])) for name in by_name[0]
    }
    return {"seen": torch.tensor(parts[0].state.seen), **tensors}


def load_streams(
    tensors: Mapping[str, Tensor], processes: Processes, *, rows: int, parts: int
) -> list[Stream]:
    """Return this process's rows of what `stream_tensors` returned, `rows` per part."""
    layers = range(sum(1 for name in tensors if name.startswith("keys.")))
    streams = []
    for part in range(parts):
        first = (processes.rank * parts + part) * rows
        own = {
            name: tensor[first : first + rows].to(processes.device)
            for name, tensor in tensors.items()
            if name != "seen"
        }
        state = StreamState(
            keys=tuple(own[f"keys.{layer}"] for layer in layers),
            values=tuple(own[f"values.{layer}"] for layer in layers),
            seen=int(tensors["seen"]),
        )
        memory = None
        if "memory.states" in own:
            memory = Memory(states=own["memory.states"], words=own["memory.words"])
        streams.append(Stream(state=state, memory=memory))
    return streams


def _rows_of(stream: Stream) -> dict[str, Tensor]:
    """Return the tensors of a stream by name, each with one row per sequence."""
    named = {f"keys.{layer}": keys for layer, keys in enumerate(stream.state.keys)}
    named |= {f"values.{layer}": values for layer, values in enumerate(stream.state.values)}
    if stream.memory is not None:
        named |= {"memory.states": stream.memory.states, "memory.words": stream.memory.words}
    return named
