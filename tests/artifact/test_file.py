"""The packed file: what is written is read again, by our reader and by one made from the page."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import safe_open
from tests.support.shapes import PACKED

from micronet_lm.artifact import PackedModel, Weights, open_packed, read_packed, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.errors import ArtifactError


def same(a: PackedModel, b: PackedModel) -> None:
    assert a.shape == b.shape
    assert a.tensors.keys() == b.tensors.keys()
    for name, own in a.tensors.items():
        other = b.tensors[name]
        assert own.bits == other.bits
        np.testing.assert_array_equal(own.values, other.values)
        assert (own.scales is None) == (other.scales is None)
        if own.scales is not None and other.scales is not None:
            np.testing.assert_array_equal(own.scales, other.scales)
    assert list(a.words) == list(b.words)
    assert (a.cache, a.tokenizer, a.activation_bits) == (b.cache, b.tokenizer, b.activation_bits)
    assert a.activations.keys() == b.activations.keys()
    for place, rows in a.activations.items():
        np.testing.assert_array_equal(rows, b.activations[place])
    assert a.card == b.card


def test_what_is_written_is_read(packed: tuple[PackedModel, Path]) -> None:
    model, path = packed
    same(model, read_packed(path))


def test_the_same_model_gives_the_same_bytes(
    packed: tuple[PackedModel, Path], tmp_path: Path
) -> None:
    _, path = packed
    write_packed(tmp_path / "again", read_packed(path))
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def second_reader(path: Path) -> dict[str, NDArray[np.float64]]:
    """A reader from docs/format.md alone: slow, with Python's integers, trusting the file."""
    found = {}
    with safe_open(path, framework="numpy") as file:
        metadata = json.loads(file.metadata()["micronet"])
        held = set(file.keys())
        for name, told in metadata["tensors"].items():
            size, bits = int(np.prod(told["shape"])), told["bits"]
            places: Any = range(size)
            if told["nonzeros"] is not None:
                mask = int.from_bytes(file.get_tensor(f"{name}.mask").tobytes(), "little")
                places = [place for place in range(size) if mask >> place & 1]
                assert len(places) == told["nonzeros"]
            flat = np.zeros(size)
            if bits == 32:
                key = name if name in held else f"{name}.values"
                flat[list(places)] = file.get_tensor(key).reshape(-1)
            else:
                whole = int.from_bytes(file.get_tensor(f"{name}.integers").tobytes(), "little")
                for number, place in enumerate(places):
                    element = (whole >> (number * bits)) % 2**bits
                    flat[place] = element - 2**bits if element >> (bits - 1) else element
            values = flat.reshape(told["shape"])
            if bits < 32:
                scales = file.get_tensor(f"{name}.steps").astype(np.float64)
                values = values * scales.reshape(-1, *[1] * (values.ndim - 1))
            found[name] = values
    return found


def test_a_second_reader_finds_the_same_values(packed: tuple[PackedModel, Path]) -> None:
    model, path = packed
    values = second_reader(path)
    assert values.keys() == model.tensors.keys()
    for name, own in model.tensors.items():
        np.testing.assert_array_equal(own.floats().astype(np.float64), values[name])


def test_literal_parts(tmp_path: Path) -> None:
    """A row of 3-bit integers, sparse, and the words: byte for byte."""
    model = random_model(PACKED, Choice(bits=4))
    integers = np.zeros(PACKED.bounds[1], np.int16)
    integers[[0, 8]] = 3, -1
    tensors = dict(model.tensors)
    tensors["softmax.biases.0"] = Weights(
        values=integers, scales=np.array([0.5], np.float32), bits=3
    )
    path = tmp_path / "model.safetensors"
    write_packed(path, replace(model, tensors=tensors))
    container = open_packed(path).container
    assert container.array("softmax.biases.0.mask").tobytes() == bytes([1, 1])
    assert container.array("softmax.biases.0.integers").tobytes() == bytes([0b111_011])
    assert container.array("softmax.biases.0.steps").tobytes() == bytes([0, 0, 0, 0x3F])
    assert container.array("vocabulary").tobytes().startswith(b"<unk>\n<eos>\nthe\n,\n\xc3\xa9\n")
    assert container.array("vocabulary").tobytes().endswith(b"\n")


def test_floats_come_first_and_are_aligned(packed: tuple[PackedModel, Path]) -> None:
    _, path = packed
    parts = open_packed(path).container.parts.values()
    assert all(part.begin % 4 == 0 for part in parts if part.dtype == "F32")


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("softmax.biases.0", {"values": np.zeros(4, np.float32)}, "shape [4] instead of [9]"),
        ("softmax.biases.0", {"values": np.full(9, np.nan, np.float32)}, "not finite"),
        ("softmax.biases.0", {"values": np.zeros(9, np.float64)}, "float64"),
        ("blocks.0.inner.bias", {"bits": 17, "scales": np.ones(1, np.float32)}, "2 to 16"),
    ],
)
def test_what_no_file_can_hold_is_not_written(
    name: str, change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    model = random_model(PACKED)
    tensors = {**model.tensors, name: replace(model.tensors[name], **change)}
    with pytest.raises(ArtifactError, match=said.replace("[", r"\[")):
        write_packed(tmp_path / "m", replace(model, tensors=tensors))
    assert list(tmp_path.iterdir()) == []


def test_integers_steps_and_words_are_checked(tmp_path: Path) -> None:
    model = random_model(PACKED, Choice(bits=4))
    name, out = "blocks.0.inner.weight", tmp_path / "m"
    own = model.tensors[name]
    for change, said in (
        ({"values": np.full_like(own.values, -8)}, "outside −7 to 7"),
        ({"scales": np.array([1.1], np.float32)}, "scales"),
        ({"scales": np.ones(3, np.float32)}, r"one scale, or one per row, got \[3\]"),
        ({"scales": None}, "no scales"),
    ):
        tensors = {**model.tensors, name: replace(own, **change)}
        with pytest.raises(ArtifactError, match=said):
            write_packed(out, replace(model, tensors=tensors))
    with pytest.raises(ArtifactError, match="surrogate"):
        write_packed(out, replace(model, card={"x": "\ud800"}))
    for words in (
        ["\ud800", *map(str, range(49))],
        ["a"] * 50,
        ["", *map(str, range(49))],
        ["a\nb", *map(str, range(49))],
        ["a"],
    ):
        with pytest.raises(ArtifactError, match="word"):
            write_packed(out, replace(model, words=words))
    fewer = {key: own for key, own in model.tensors.items() if key != name}
    with pytest.raises(ArtifactError, match="lacks tensor"):
        write_packed(out, replace(model, tensors=fewer))
    with pytest.raises(ArtifactError, match="JSON"):
        write_packed(out, replace(model, card={"x": float("nan")}))
