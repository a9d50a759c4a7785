import json
import resource
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from micronet_lm.errors import RunError
from micronet_lm.runs import Progress
from micronet_lm.training.checkpoint import read_checkpoint, write_checkpoint


def test_tensors_and_progress_come_back_to_the_bit(tmp_path: Path) -> None:
    tensors = {"model.a": torch.randn(3, 4), "optimizer.m.a": torch.randn(5).bfloat16()}
    progress = Progress(step=7, best_loss=0.1 + 0.2, best_step=5, pending_loss=1 / 3)
    path = tmp_path / "x.safetensors"
    write_checkpoint(path, tensors, progress)
    back = read_checkpoint(path)
    assert back.progress == progress
    assert all(torch.equal(back.tensors[name], tensor) for name, tensor in tensors.items())
    assert list(back.part("optimizer")) == ["m.a"]
    assert list(read_checkpoint(path, prefix="model.").tensors) == ["model.a"]
    assert [file.name for file in tmp_path.iterdir()] == ["x.safetensors"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write_checkpoint(path, {"model.a": torch.ones(2)}, Progress(step=1))

    # Past this limit the system refuses to write, as a full disk does.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(
            RunError,
            match=r"x\.safetensors cannot be written .*resumes from its last saved checkpoint",
        ):
            write_checkpoint(path, {"model.a": torch.zeros(100_000)}, Progress(step=2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)
    assert read_checkpoint(path).progress.step == 1
    assert [file.name for file in tmp_path.iterdir()] == ["x.safetensors"]


def test_damaged_foreign_and_missing_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(RunError, match=r"x\.safetensors does not exist"):
        read_checkpoint(path)
    write_checkpoint(path, {"model.a": torch.ones(200)}, Progress())
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(RunError, match=r"x\.safetensors is damaged"):
        read_checkpoint(path)
    path.write_bytes(b"\x80\x04pickle")
    with pytest.raises(RunError, match=r"x\.safetensors is damaged"):
        read_checkpoint(path)
    save_file({"a": torch.ones(1)}, path, metadata={"format": "other"})
    with pytest.raises(RunError, match="not a checkpoint of this program"):
        read_checkpoint(path)
    save_file(
        {"a": torch.ones(1)},
        path,
        metadata={"format": "micronet-checkpoint-1", "progress": json.dumps({"age": 3})},
    )
    with pytest.raises(RunError, match="damaged"):
        read_checkpoint(path)


@pytest.mark.parametrize("text", ['{"step": 1, "step": 2}', '{"best_loss": NaN}', "[" * 100_000])
def test_progress_that_is_not_strict_json_is_refused(tmp_path: Path, text: str) -> None:
    """The last of two steps was taken; brackets ended in a RecursionError."""
    path = tmp_path / "x.safetensors"
    about = {"format": "micronet-checkpoint-1", "progress": text}
    save_file({"a": torch.ones(1)}, path, metadata=about)
    with pytest.raises(RunError, match=r"x\.safetensors is damaged \(its progress"):
        read_checkpoint(path)
