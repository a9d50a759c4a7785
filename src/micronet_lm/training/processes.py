"""One process or several under `torchrun`: the rank of this one, and communication."""

import atexit
import gc
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from micronet_lm.errors import MicronetError, RunError, UsageError
from micronet_lm.training.device import this_device

TIMEOUT_VARIABLE = "MICRONET_TIMEOUT_MINUTES"
"""Environment variable with the longest time that a process waits for the others."""

TIMEOUT_MINUTES = 240.0
"""Its default: longer than any evaluation or shard for which the others wait."""

_FAILED = "failed"
"""Key of the store under which a process says why it ended."""

_LOST = ("gloo", "onnection", "Timed out", "timed out", "NCCL", "Broken pipe")
"""Words of torch's errors when another process does not answer."""


@dataclass(frozen=True, kw_only=True)
class Processes:
    """This process among those that train together."""

    rank: int
    """Number of this process, from 0."""

    count: int
    """Number of processes."""

    device: torch.device
    """Device of this process."""

    store: Any = None
    """Small values that all processes see, as a `torch.distributed.Store`; None for one process."""

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
        own = tensor.to(self.device).contiguous()  # NCCL exchanges only what is on the GPU
        parts = [torch.empty_like(own) for _ in range(self.count)]
        dist.all_gather(parts, own)
        return torch.cat(parts).to(tensor.device)

    def share(self, value: float) -> float:
        """Return the leader's number in every process."""
        if self.count == 1:
            return value
        tensor = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.broadcast(tensor, src=0)
        return float(tensor)

    def share_tensor(self, tensor: Tensor) -> Tensor:
        """Return the leader's tensor in every process; those of the others give type and shape."""
        if self.count == 1:
            return tensor
        sent = tensor.to(self.device).contiguous()
        dist.broadcast(sent, src=0)
        return sent.to(tensor.device)

    def texts(self, text: str) -> list[str]:
        """Return the texts of all processes in the order of the ranks."""
        if self.count == 1:
            return [text]
        own = torch.tensor(list(text.encode()), dtype=torch.uint8)
        sizes = self.gather(torch.tensor([len(own)])).tolist()
        padded = torch.zeros(1, max(1, *sizes), dtype=torch.uint8)
        padded[0, : len(own)] = own
        rows = self.gather(padded)
        return [bytes(row[:size].tolist()).decode() for row, size in zip(rows, sizes, strict=True)]

    def share_text(self, text: str) -> str:
        """Return the leader's text in every process."""
        return self.texts(text if self.leads else "")[0]

    def wait(self) -> None:
        """Wait until all processes are here."""
        self.mean([0.0])

    def failure(self) -> str | None:
        """Return one sentence about another process that has said why it ended; else None."""
        if self.store is None:
            return None
        with suppress(RuntimeError):  # the store may be gone with another process
            if self.store.check([_FAILED]):
                said = self.store.get(_FAILED).decode()
                return f"another process failed, so this one stopped too; {said}"
        return None


class LostProcessError(RunError):
    """Another process ended or cannot be reached, and could not say why."""


_joined: list[Processes] = []
"""The group that this process is in, if it is in one: at most one entry."""

_stores: list[Any] = []
"""The store of all groups of this process, one after the other: at most one entry."""

atexit.register(_stores.clear)  # its connection ends while Python is still whole

_groups: list[int] = []
"""One entry per group that this process was in, so that each has its own keys."""


@contextmanager
def joined_processes() -> Iterator[Processes]:
    """Join the group that `torchrun` describes in the environment, or use one process.

    Inside another call, that call's group is used. When another process ends or does not answer, a
    `RunError` says so, with the reason if that process could give one.
    """
    if _joined:
        yield _joined[0]
        return
    count = int(os.environ.get("WORLD_SIZE", "1"))
    device = this_device()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if count == 1:
        yield Processes(rank=0, count=1, device=device)
        return
    processes = _join(device)
    _joined.append(processes)
    try:
        yield processes
        processes.wait()  # no process may leave while another still communicates with it
    except MicronetError as error:
        _leave_word(processes, str(error))
        raise
    except RuntimeError as error:
        if not any(word in str(error) for word in _LOST):
            _leave_word(processes, f"{type(error).__name__}: {error}")
            raise
        raise _loss_of_another(processes, error) from error
    finally:
        _joined.clear()
        dist.destroy_process_group()
        gc.collect()  # unused models hold the group, whose threads must end before Python does


def host_name() -> str:
    """Return this host's name."""
    return socket.gethostname()


def _join(device: torch.device) -> Processes:
    """Meet the other processes."""
    patience = timedelta(minutes=timeout_minutes())
    try:
        if not _stores:
            store, _, _ = next(rendezvous("env://", timeout=patience))
            _stores.append(store)
        rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        own = dist.PrefixStore(  # type: ignore[attr-defined]
            f"micronet/{len(_groups)}", _stores[0]
        )
        _groups.append(rank)
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=own,
            rank=rank,
            world_size=count,
            timeout=patience,
        )
    except (RuntimeError, ValueError) as error:
        where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        raise RunError(
            f"this process on {host_name()} cannot reach the others at {where} "
            f"({_first_line(error)}): check that all hosts run the same command and see each "
            "other, and name the network with GLOO_SOCKET_IFNAME if they have several"
        ) from error
    return Processes(rank=rank, count=count, device=device, store=own)


def timeout_minutes() -> float:
    """Return the longest time that this process waits for the others."""
    text = os.environ.get(TIMEOUT_VARIABLE, "")
    try:
        minutes = float(text) if text else TIMEOUT_MINUTES
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < 1e6:
        raise UsageError(f"{TIMEOUT_VARIABLE} must be a number of minutes above 0, got {text}")
    return minutes


def _leave_word(processes: Processes, sentence: str) -> None:
    """Tell the other processes why this one ends; only the first message counts."""
    assert processes.store is not None  # noqa: S101
    with suppress(RuntimeError):  # the store may be gone with another process
        processes.store.compare_set(
            _FAILED, "", f"process {processes.rank} on {host_name()} stopped: {sentence}"
        )


def _loss_of_another(processes: Processes, error: Exception) -> RunError:
    """Return one sentence about a process that does not answer any more."""
    if (known := processes.failure()) is not None:
        return RunError(known)
    return LostProcessError(
        f"another process ended or cannot be reached any more ({_first_line(error)}), so this one "
        f"on {host_name()} stopped too: see the messages of the others; the same command resumes "
        "from what was saved"
    )


def _first_line(error: Exception) -> str:
    """Return torch's own reason, without its place in torch's sources and its advice."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r"^\[\S*/\S*\]\s*", "", line).split(". ")[0][:200].rstrip(".")
