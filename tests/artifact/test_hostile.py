"""Hostile bytes: an error in one sentence, or a model that is whole; nothing else ever."""

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.shapes import LEAST

from micronet_lm.artifact import Weights, open_packed, read_packed, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.cli.main import main
from micronet_lm.config import CODE_PLACES
from micronet_lm.errors import ArtifactError

Header = dict[str, Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    choice = Choice(bits=5, sparsity=0.7, cache=3, places=CODE_PLACES)
    path = tmp_path_factory.mktemp("tiny") / "model.safetensors"
    # Without a checksum, which would refuse every change before it is looked at.
    write_packed(path, random_model(LEAST, choice), with_checksum=False)
    return path.read_bytes()


def refused(path: Path, data: bytes) -> str | None:
    """Read the bytes; the sentence that refused them, or nothing when they are a model."""
    path.unlink(missing_ok=True)  # far quicker than to write over a file that is still mapped
    path.write_bytes(data)
    try:
        read_packed(path)
    except ArtifactError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
        return str(error)
    return None


def parts_of(whole: bytes) -> tuple[Header, bytes]:
    length = struct.unpack("<Q", whole[:8])[0]
    return json.loads(whole[8 : 8 + length]), whole[8 + length :]


def put_together(header: Header | str, data: bytes) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_every_truncation_is_refused(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m"
    for length in range(len(whole)):
        assert refused(path, whole[:length]) is not None, length
    assert refused(path, whole) is None
    assert refused(path, whole + b"\0") is not None


def test_bit_flips_never_crash(whole: bytes, tmp_path: Path) -> None:
    """One random bit of every byte; a flip among the values may leave a model."""
    random, path, left = np.random.default_rng(0), tmp_path / "m", 0
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(random.integers(8))
        left += refused(path, bytes(flipped)) is None
    assert left < len(whole) / 4


def lie(change: Callable[[Header, Header], None]) -> Callable[[Header], None]:
    """A change of the header, given the header and the metadata."""

    def carry_out(header: Header) -> None:
        metadata = json.loads(header["__metadata__"]["micronet"])
        change(header, metadata)
        if "__metadata__" in header and "micronet" in header["__metadata__"]:
            header["__metadata__"]["micronet"] = json.dumps(metadata)

    return carry_out


def put(*keys: str | int, value: Any) -> Callable[[Header], None]:
    """A lie in the metadata: the value at the end of the keys."""

    def change(_: Header, metadata: Header) -> None:
        place: Any = metadata
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return lie(change)


def drop(*keys: str) -> Callable[[Header], None]:
    def change(_: Header, metadata: Header) -> None:
        place = metadata
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]

    return lie(change)


def in_card(text: str) -> Callable[[Header], None]:
    """A card that Python's json would not write."""

    def change(header: Header) -> None:
        put("card", value="HERE")(header)
        metadata = header["__metadata__"]
        metadata["micronet"] = metadata["micronet"].replace('"HERE"', text)

    return change


TABLE = "embedding.tables.0"
NORM = "blocks.0.ffn_norm.bias"
LIES: dict[str, tuple[Callable[[Header], None], str]] = {
    "another format": (put("format", value=5), "format must be 1, 2, 3 or 4, got 5"),
    "a format with more keys": (put("format", value=4), "the metadata lack 'ngrams'"),
    "a fade in an older format": (put("cache", "fade", value=9), "unknown 'fade'"),
    "the other format": (put("format", value=2), "the metadata lack"),
    "format as a float": (put("format", value=1.0), "format must be 1, 2, 3 or 4, got 1.0"),
    "format as a truth": (put("format", value=True), "format must be 1, 2, 3 or 4, got true"),
    "no model": (drop("model"), "lack 'model'"),
    "unknown key": (put("extra", value=1), "unknown 'extra'"),
    "huge vocabulary": (put("model", "vocabulary", value=2**40), "2147483647"),
    "larger vocabulary": (put("model", "vocabulary", value=7), "shape"),
    "no words": (
        put("model", "vocabulary", value=0),
        "vocabulary must be a whole number from 1 to 2147483647, got 0",
    ),
    "huge layers": (put("model", "layers", value=2**31 - 1), "layers"),
    "two layers": (put("model", "layers", value=2), "lack"),
    "negative width": (
        put("model", "width", value=-2),
        "width must be a whole number from 1 to 2147483647, got -2",
    ),
    "width as text": (put("model", "width", value="2"), "width"),
    "cutoffs fall": (put("model", "cutoffs", value=[6]), "cutoffs"),
    "cutoffs as a number": (put("model", "cutoffs", value=3), "not a list"),
    "one width less": (put("model", "embedding_widths", value=[2]), "embedding_widths"),
    "huge cache": (put("cache", "size", value=2**25), "cache.size"),
    "empty cache": (put("cache", "size", value=0), "cache.size"),
    "ramp beyond the cache": (put("cache", "ramp", value=2**20), "cache.ramp"),
    "ramp below 0": (put("cache", "ramp", value=-1), "cache.ramp"),
    "no cache": (put("cache", value=None), "unknown tensor"),
    "cache as a list": (put("cache", value=[3]), "cache"),
    "unknown tokenizer": (put("tokenizer", value="bytes"), "tokenizer"),
    "tokenizer as a list": (put("tokenizer", value=["word"]), "tokenizer"),
    "too many activation bits": (put("activation_bits", value=17), "activation_bits"),
    "no activation bits": (put("activation_bits", value=None), "activation_bits"),
    "card as text": (put("card", value="x"), "card"),
    "card with half a surrogate pair": (put("card", value={"x": ["\ud800"]}), "surrogate"),
    "card's key with half a pair": (put("card", value={"\udfff": 1}), "surrogate"),
    "card with a number that is too large": (in_card('{"x": [-1e999]}'), "'-1e999'"),
    "one bit": (put("tensors", TABLE, "bits", value=1), "2 to 16 bits or 32, got 1"),
    "24 bits": (put("tensors", TABLE, "bits", value=24), "2 to 16 bits or 32, got 24"),
    "other bits": (put("tensors", TABLE, "bits", value=9), "instead of"),
    "other shape": (put("tensors", TABLE, "shape", value=[2, 3]), "shape"),
    "huge shape": (put("tensors", TABLE, "shape", value=[2**62, 2**62]), "shape"),
    "too many non-zeros": (put("tensors", TABLE, "nonzeros", value=7), "7 non-zeros"),
    "fewer non-zeros": (put("tensors", TABLE, "nonzeros", value=1), "marks"),
    "negative non-zeros": (put("tensors", TABLE, "nonzeros", value=-1), "-1 non-zeros"),
    "dense after all": (put("tensors", TABLE, "nonzeros", value=None), "instead of"),
    "quantized norm": (put("tensors", NORM, "bits", value=9), "LayerNorm"),
    "missing tensor": (drop("tensors", TABLE), "lack"),
}


@pytest.mark.parametrize("name", LIES)
def test_lies_in_the_metadata_are_refused(name: str, whole: bytes, tmp_path: Path) -> None:
    change, said = LIES[name]
    header, data = parts_of(whole)
    change(header)
    sentence = refused(tmp_path / "m", put_together(header, data))
    assert sentence is not None
    assert said in sentence, sentence


def offsets(name: str, value: list[Any]) -> Callable[[Header], None]:
    def change(header: Header) -> None:
        header[name]["data_offsets"] = value

    return change


def entry(name: str, **values: Any) -> Callable[[Header], None]:
    def change(header: Header) -> None:
        header[name] = {**header.get(name, {}), **values}

    return change


OUTER: dict[str, Callable[[Header], None]] = {
    "offsets beyond the file": offsets("vocabulary", [0, 10**9]),
    "offsets backwards": offsets("vocabulary", [20, 2]),
    "negative offsets": offsets("vocabulary", [-4, 18]),
    "offsets of floats": offsets("vocabulary", [0.0, 22.0]),
    "three offsets": offsets("vocabulary", [0, 1, 2]),
    "overlap": offsets("cache.lam", [0, 4]),
    "huge offsets": offsets("vocabulary", [2**64, 2**64 + 22]),
    "unknown dtype": entry("vocabulary", dtype="F16"),
    "dtype as a list": entry("vocabulary", dtype=["U8"]),
    "other dtype": entry("cache.lam", dtype="U8", shape=[4]),
    "more dimensions": entry("vocabulary", shape=[1, 1, 22]),
    "huge shape": entry("vocabulary", shape=[2**63, 2**63]),
    "negative shape": entry("vocabulary", shape=[-22]),
    "more keys": entry("vocabulary", extra=1),
    "one more tensor": entry("more", dtype="U8", shape=[0], data_offsets=[0, 0]),
    "a missing tensor": lambda header: header.pop("cache.lam"),
    "no metadata": lambda header: header.pop("__metadata__"),
    "metadata as text": lambda header: header.update(__metadata__="x"),
    "more metadata": lambda header: header["__metadata__"].update(more="x"),
    "metadata no JSON": lambda header: header["__metadata__"].update(micronet="{"),
    "metadata a list": lambda header: header["__metadata__"].update(micronet="[]"),
    "deep metadata": lambda h: h["__metadata__"].update(micronet="[" * 100_000),
    "infinite metadata": lambda h: h["__metadata__"].update(micronet='{"format": Infinity}'),
    "metadata twice": lambda h: h["__metadata__"].update(micronet='{"format": 1, "format": 1}'),
    "long number": lambda h: h["__metadata__"].update(micronet='{"format": 1' + "0" * 5000 + "}"),
}


@pytest.mark.parametrize("name", OUTER)
def test_lies_in_the_header_are_refused(name: str, whole: bytes, tmp_path: Path) -> None:
    header, data = parts_of(whole)
    OUTER[name](header)
    assert refused(tmp_path / "m", put_together(header, data)) is not None


def test_a_name_that_comes_twice_is_refused(whole: bytes, tmp_path: Path) -> None:
    header, data = parts_of(whole)
    text = json.dumps(header)
    twice = text[:-1] + ', "cache.lam": ' + json.dumps(header["cache.lam"]) + "}"
    assert "twice" in (refused(tmp_path / "m", put_together(twice, data)) or "")


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**63, 2**64 - 1])
def test_lies_about_the_headers_length_are_refused(
    length: int, whole: bytes, tmp_path: Path
) -> None:
    assert refused(tmp_path / "m", struct.pack("<Q", length) + whole[8:]) is not None


def changed(whole: bytes, name: str, data: bytes) -> bytes:
    """The file with other bytes in one part."""
    header, rest = parts_of(whole)
    begin, end = header[name]["data_offsets"]
    assert len(data) == end - begin
    return whole[: len(whole) - len(rest)] + rest[:begin] + data + rest[end:]


FLOATS: dict[str, list[float]] = {
    "cache.lam": [0, 1, -0.1, np.nan, np.inf],
    "cache.theta": [0, -1, np.nan, np.inf],
    f"{TABLE}.steps": [np.nan, np.inf, -1, 2.0**-140, 2.0**110, 1 + 2.0**-22],
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_out_of_bounds_are_refused(name: str, whole: bytes, tmp_path: Path) -> None:
    for value in FLOATS[name]:
        data = changed(whole, name, np.float32(value).tobytes())
        assert refused(tmp_path / "m", data) is not None, value


def test_bad_values_are_refused(whole: bytes, tmp_path: Path) -> None:
    header, _ = parts_of(whole)
    shapes = {name: part["shape"] for name, part in header.items() if name != "__metadata__"}
    nan = np.full(shapes["blocks.0.attention.positions"], np.nan, np.float32).tobytes()
    rows = np.array([[1, np.nan]], np.float32).tobytes()
    negative = np.array([[-1, 1]], np.float32).tobytes()
    ones = b"\xff" * shapes["blocks.0.inner.bias.integers"][0]
    smallest = (0b10000).to_bytes(shapes["blocks.0.inner.bias.integers"][0], "little")
    words = shapes["vocabulary"][0]
    for name, data, said in (
        ("blocks.0.attention.positions", nan, "not finite"),
        ("activations.hidden", rows, "scales"),
        ("activations.hidden", negative, "ranges"),
        ("blocks.0.inner.bias.integers", ones, "after its last"),
        ("blocks.0.inner.bias.integers", smallest, "2^4"),
        (f"{TABLE}.integers", bytes(shapes[f"{TABLE}.integers"][0]), "zero among"),
        (f"{TABLE}.mask", b"\xff" * shapes[f"{TABLE}.mask"][0], "after its last"),
        ("vocabulary", b"\xff" * words, "UTF-8"),
        ("vocabulary", b"a" * words, "line feed"),
        ("vocabulary", b"\n" * words, "words instead of 6"),
        ("vocabulary", b"a\n" * 5 + b"b" * (words - 11) + b"\n", "twice"),
    ):
        sentence = refused(tmp_path / "m", changed(whole, name, data))
        assert sentence is not None, name
        assert said in sentence, sentence


CONTROLS = "a\x1b[31mred\x1b]0;title\x07\x7f\x9b2J\u202eback\rend"


def test_a_terminal_obeys_no_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = {"name": CONTROLS, CONTROLS: [CONTROLS], "city": "Zürich [bold]日本"}
    path = tmp_path / "m"
    write_packed(path, replace(random_model(LEAST), card=card))
    assert main(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert "name: a\\x1b[31mred\\x1b]0;title\\x07\\x7f\\x9b2J\\u202eback\\rend\n" in shown
    assert "city: Zürich [bold]日本\n" in shown
    assert main(["inspect", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["card"] == card


def test_a_terminal_obeys_no_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["<unk>", "<eos>", *(f"{number}\x1b[2J" for number in range(4))]
    path, text = tmp_path / "m", tmp_path / "text"
    write_packed(path, replace(random_model(LEAST), words=words))
    text.write_text(" ".join(words))
    for verb in (["predict", "a", "-k", "6"], ["generate", "--seed", "1"], ["score", str(text)]):
        assert main([*verb, "-m", str(path)]) == 0
        shown = capsys.readouterr().out
        assert "\x1b" not in shown
        assert "\\x1b[2J" in shown


def test_what_is_no_packed_file(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="there is no file"):
        read_packed(tmp_path / "missing")
    with pytest.raises(ArtifactError, match="is a folder"):
        read_packed(tmp_path)
    assert refused(tmp_path / "m", b"") is not None
    assert refused(tmp_path / "m", b"not a model at all, only text") is not None


class OtherForm(Weights):
    """A tensor in the longer of its two forms."""

    @property
    def sparse(self) -> bool:
        return not super().sparse


@pytest.mark.parametrize("bits", [5, 32])
def test_a_tensor_in_its_longer_form_is_refused(bits: int, tmp_path: Path) -> None:
    """Or a file would take other bytes than are counted for it."""
    path = tmp_path / "m"
    for sparsity, form in ((0.7, "dense"), (0.0, "sparse")):
        model = random_model(LEAST, Choice(bits=bits, sparsity=sparsity))
        own = model.tensors[TABLE]
        assert own.sparse is (form == "dense")
        other = OtherForm(values=own.values, scales=own.scales, bits=own.bits)
        write_packed(path, replace(model, tensors={**model.tensors, TABLE: other}))
        with pytest.raises(ArtifactError, match=f"{TABLE} with . non-zeros of 6 .* is {form}"):
            read_packed(path)


def test_zeros_of_layernorm_stay_where_they_are(tmp_path: Path) -> None:
    model = random_model(LEAST)
    zeros = Weights(values=np.zeros(2, np.float32), maskable=False)
    path = tmp_path / "m"
    write_packed(path, replace(model, tensors={**model.tensors, NORM: zeros}))
    assert not read_packed(path).tensors[NORM].sparse
    assert open_packed(path).container.parts[NORM].bytes == 8
