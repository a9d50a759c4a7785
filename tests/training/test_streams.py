"""What streams carry keeps its row, however many processes and parts hold it."""

import torch
from torch import Tensor

from micronet_lm.model import Memory, StreamState
from micronet_lm.training.processes import Processes
from micronet_lm.training.streams import Stream, load_streams, stream_tensors

LAYERS, ROWS = 2, 4


def rows(low: int, high: int) -> Stream:
    """Streams of some rows of the batch; every number identifies its row."""

    def marked(*shape: int, part: int) -> Tensor:
        row = torch.arange(low, high, dtype=torch.float32)
        return (100 * part + row).view(-1, *(1 for _ in shape)).expand(-1, *shape).contiguous()

    state = StreamState(
        keys=tuple(marked(5, 2, 3, part=layer) for layer in range(LAYERS)),
        values=tuple(marked(5, 2, 4, part=10 + layer) for layer in range(LAYERS)),
        seen=3,
    )
    words = marked(7, part=50).long()
    return Stream(state=state, memory=Memory(states=marked(7, 6, part=30), words=words))


class Rank(Processes):
    """One of two processes, which knows what the other one would send."""

    def gather(self, tensor: Tensor) -> Tensor:
        other = tensor + (2 if self.rank == 0 else -2)  # rows 0, 1 here and 2, 3 there
        return torch.cat([tensor, other] if self.rank == 0 else [other, tensor])


def test_two_processes_with_two_parts_each_are_one_with_one() -> None:
    device = torch.device("cpu")
    whole = stream_tensors([rows(0, ROWS)], Processes(rank=0, count=1, device=device))
    for rank in (0, 1):
        parts = [rows(2 * rank + part, 2 * rank + part + 1) for part in (0, 1)]
        saved = stream_tensors(parts, Rank(rank=rank, count=2, device=device))
        assert saved.keys() == whole.keys()
        for name, tensor in whole.items():
            assert torch.equal(saved[name], tensor), name
    assert whole["memory.words"][:, 0].tolist() == [50 * 100 + row for row in range(ROWS)]


def test_everybody_gets_back_its_own_rows() -> None:
    device = torch.device("cpu")
    saved = stream_tensors([rows(0, ROWS)], Processes(rank=0, count=1, device=device))
    for count, parts in ((1, 1), (2, 1), (2, 2), (1, 4)):
        size = ROWS // (count * parts)
        for rank in range(count):
            processes = Processes(rank=rank, count=count, device=device)
            loaded = load_streams(saved, processes, rows=size, parts=parts)
            for part, stream in enumerate(loaded):
                first = (rank * parts + part) * size
                expected = rows(first, first + size)
                assert stream.memory is not None
                assert expected.memory is not None
                assert torch.equal(stream.memory.words, expected.memory.words)
                assert torch.equal(stream.memory.states, expected.memory.states)
                for ours, theirs in zip(stream.state.keys, expected.state.keys, strict=True):
                    assert torch.equal(ours, theirs)
                for ours, theirs in zip(stream.state.values, expected.state.values, strict=True):
                    assert torch.equal(ours, theirs)
                assert stream.state.seen == 3
