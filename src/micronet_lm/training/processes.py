"""One process or several under `torchrun`: the rank of this one, and communication."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from micronet_lm.errors import RunError


@dataclass(frozen=True, kw_only=True)
class Processes:
    """This process among those that train together."""

    rank: int
    """Number of this process, from 0."""

    count: int
    """Number of processes."""

    device: torch.device
    """Device of this process."""

    @property
    def leads(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def mean(self, values: list[float]) -> list[float]:
        """Average numbers over all processes; every process gets the same result."""
        if self.count == 1:
            return values
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return [float(value) / self.count for value in tensor]

    def gather(self, tensor: Tensor) -> Tensor:
        """Concatenate the (B, …) tensors of all processes in the order of the ranks."""
        if self.count == 1:
            return tensor
        parts = [torch.empty_like(tensor) for _ in range(self.count)]
        dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts)

    def share(self, value: float) -> float:
        """Return the leader's number in every process."""
        if self.count == 1:
            return value
        tensor = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.broadcast(tensor, src=0)
        return float(tensor)


@contextmanager
def joined_processes() -> Iterator[Processes]:
    """Join the group that `torchrun` describes in the environment, or use one process."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", local) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    if count == 1:
        yield Processes(rank=0, count=1, device=device)
        return
    dist.init_process_group("nccl" if gpu else "gloo")
    try:
        yield Processes(rank=dist.get_rank(), count=count, device=device)
        dist.barrier()  # no process may leave while another still communicates with it
    except RuntimeError as error:
        if dist.get_rank() > 0 and "onnection" in str(error):
            raise RunError(
                "another process failed, so this one stopped: see its message"
            ) from error
        raise
    finally:
        dist.destroy_process_group()
