"""The checksum, and damage of everything that is written."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tests.support.engines import ENGINES
from tests.support.shapes import LEAST_NATIVE

from micronet_lm.artifact import open_packed, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.checksum import checksum, checksum_in_numpy
from micronet_lm.cli.main import main
from micronet_lm.config import CODE_PLACES
from micronet_lm.errors import ArtifactError, RunError
from micronet_lm.runs.checkpoint import (
    FORMAT,
    WITHOUT_CHECKSUMS,
    checksum_entries,
    open_checkpoint,
)
from micronet_lm.runs.seal import seal_holds, sealed
from micronet_lm.runtime.engines import has_native, open_engine

CHOICE = Choice(cache=3, sparsity=0.4, bits=9, places=CODE_PLACES)


def by_definition(data: bytes) -> int:
    """The checksum word by word, as docs/format.md defines it."""
    step, factor, every = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, (1 << 64) - 1

    def mix(x: int) -> int:
        x = (x ^ x >> 32) * factor & every
        x = (x ^ x >> 29) * step & every
        return x ^ x >> 32

    result = mix(len(data))
    for begin in range(0, len(data), 65536):
        total = 0
        for place, at in enumerate(range(begin, min(begin + 65536, len(data)), 8), 1):
            x = int.from_bytes(data[at : min(at + 8, begin + 65536)], "little") + place * step
            x = (x & every ^ (x & every) >> 32) * factor & every
            total += x ^ x >> 29
        result = mix(result + total & every)
    return result


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 65535, 65536, 65537, 131080])
def test_every_way_to_compute_it_gives_the_same(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    expected = by_definition(data.tobytes())
    assert checksum_in_numpy(data) == expected
    assert int(checksum(data), 16) == expected


def test_its_value_is_fixed_for_good() -> None:
    assert checksum(b"") == "0000000000000000"
    assert checksum(b"micronet") == f"{by_definition(b'micronet'):016x}"


def test_every_changed_bit_and_every_swap_changes_it() -> None:
    data = np.random.default_rng(1).integers(0, 256, 1000, np.uint8)
    seen = {checksum(data)}
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        seen.add(checksum(data))
        data[bit // 8] ^= 1 << bit % 8
    assert len(seen) == 8 * len(data) + 1
    swapped = data.copy()
    swapped[:8], swapped[8:16] = data[8:16], data[:8]
    assert checksum(swapped) not in seen
    assert checksum(np.append(data, np.uint8(0))) not in seen


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("packed") / "model.safetensors"
    write_packed(path, random_model(LEAST_NATIVE, CHOICE))
    return path.read_bytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_no_flipped_bit_of_a_packed_file_is_accepted(
    engine: str, packed: bytes, tmp_path: Path
) -> None:
    """494 of 600 were, and 325 of them changed scores."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(packed)
    open_engine(path, engine)  # type: ignore[arg-type]
    for place in range(0, len(packed), 1 if engine == "native" else 5):
        spoiled = bytearray(packed)
        spoiled[place] ^= 1 << (place * 5 + place // 8) % 8
        path.unlink()
        path.write_bytes(spoiled)
        with pytest.raises(ArtifactError) as caught:
            open_engine(path, engine)  # type: ignore[arg-type]
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_damage_says_what_to_do(engine: str, packed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    spoiled = bytearray(packed)
    spoiled[-20] ^= 1
    path.write_bytes(spoiled)
    with pytest.raises(ArtifactError, match=r"checksum.*damaged.*restore it or pack again"):
        open_engine(path, engine)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_without_a_checksum_goes_on_working(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "old.safetensors"
    write_packed(path, random_model(LEAST_NATIVE, CHOICE), with_checksum=False)
    assert open_engine(path, engine).vocabulary_size == LEAST_NATIVE.vocabulary  # type: ignore[arg-type]
    assert not open_packed(path).container.checked


def test_without_a_checksum_the_bytes_are_those_of_the_safetensors_package(tmp_path: Path) -> None:
    old, other = tmp_path / "old.safetensors", tmp_path / "other.safetensors"
    write_packed(old, random_model(LEAST_NATIVE, CHOICE), with_checksum=False)
    container = open_packed(old).container
    parts: dict[str, Any] = {name: container.array(name) for name in container.parts}
    save_file(parts, other, metadata={"micronet": container.metadata})
    assert old.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_checksum_that_is_not_last_is_refused(engine: str, packed: bytes, tmp_path: Path) -> None:
    length = int.from_bytes(packed[:8], "little")
    header = json.loads(packed[8 : 8 + length])
    header["checksum"]["shape"] = [2, 4]
    text = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + packed[8 + length :])
    with pytest.raises(ArtifactError, match="not the file's last 8 bytes"):
        open_engine(path, engine)  # type: ignore[arg-type]


@pytest.mark.skipif(not has_native(), reason="needs the native engine")
def test_a_truncated_open_file_is_not_noticed_and_does_no_harm(tmp_path: Path) -> None:
    """Words were read from the mapped file: SIGBUS ended the process."""
    for engine in ("native", "numpy"):
        path = tmp_path / "model.safetensors"
        write_packed(path, random_model(LEAST_NATIVE, CHOICE))
        opened = open_engine(path, engine)
        expected = [opened.word(number) for number in range(opened.vocabulary_size)]
        path.write_bytes(b"")
        assert [opened.word(number) for number in range(opened.vocabulary_size)] == expected
        session = opened.start()
        session.feed_many([1, 2])
        assert np.isfinite(session.log_distribution()).all()
        path.unlink()


def checkpoint(path: Path) -> Path:
    tensors: dict[str, NDArray[Any]] = {
        "model.a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "optimizer.b": np.ones(3),
    }
    progress = json.dumps({"step": 7})
    entries = {"format": FORMAT, "progress": progress, **checksum_entries(tensors, progress)}
    save_file(tensors, path, metadata=entries)
    return path


def read_all(path: Path) -> int:
    with open_checkpoint(path) as reader:
        for name in reader.names:
            reader.tensor(name)
        return reader.progress.step


def test_no_flipped_bit_of_a_checkpoint_is_accepted(tmp_path: Path) -> None:
    """A flipped bit in last.safetensors resumed silently to other weights, 8 of 8."""
    path = checkpoint(tmp_path / "last.safetensors")
    assert read_all(path) == 7
    whole, kept = path.read_bytes(), []
    for bit in range(0, 8 * len(whole), 3):
        spoiled = bytearray(whole)
        spoiled[bit // 8] ^= 1 << bit % 8
        path.unlink()
        path.write_bytes(spoiled)
        try:
            assert read_all(path) == 7
        except RunError as error:
            assert str(path) in str(error)
            continue
        kept.append(bit // 8)
    # Only the white space after the header may change: it means nothing.
    length = int.from_bytes(whole[:8], "little")
    assert {chr(whole[place]) for place in kept} <= {" "}
    assert all(8 <= place < 8 + length for place in kept)


def test_a_checkpoint_without_checksums_goes_on_working(tmp_path: Path) -> None:
    path = tmp_path / "old.safetensors"
    entries = {"format": WITHOUT_CHECKSUMS, "progress": json.dumps({"step": 7})}
    save_file({"model.a": np.ones(2)}, path, metadata=entries)
    assert read_all(path) == 7
    with open_checkpoint(path) as reader:
        assert not reader.checked


def test_a_seal_notices_an_edit() -> None:
    text = sealed("train:\n  steps: 100\n")
    assert seal_holds(text) is True
    assert seal_holds(text.replace("100", "200")) is False
    assert seal_holds("train:\n  steps: 100\n") is None


def test_verify_tells_whole_from_damaged(
    packed: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, old, bad = (tmp_path / f"{name}.safetensors" for name in ("good", "old", "bad"))
    good.write_bytes(packed)
    write_packed(old, random_model(LEAST_NATIVE, CHOICE), with_checksum=False)
    bad.write_bytes(packed[:-1] + bytes([packed[-1] ^ 1]))
    assert main(["verify", str(good), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["found"][0]["told"] == "whole"
    assert main(["verify", str(old)]) == 0
    assert "no checksum" in capsys.readouterr().out
    assert main(["verify", str(bad), "--json"]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["whole"] is False
    assert str(bad) in told.err
    assert told.err.count("\n") == 1
    saved = checkpoint(tmp_path / "last.safetensors")
    assert main(["verify", str(saved)]) == 0
    saved.write_bytes(saved.read_bytes()[:-1] + b"\x01")
    assert main(["verify", str(saved)]) == 1
    assert main(["verify", str(tmp_path / "none")]) == 2
    assert main(["verify", str(tmp_path)]) == 2
