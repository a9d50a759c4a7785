"""The table of n-grams in a file: literal bytes, and hostile tables refused by both readers."""

import json
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.shapes import LEAST

from micronet_lm.artifact import PackedModel, open_packed, read_packed, write_packed
from micronet_lm.artifact.ngram_parts import check_table, table_parts
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.errors import ArtifactError
from micronet_lm.ngrams import NgramTable, TableOrder
from micronet_lm.runtime.engine import Engine
from micronet_lm.runtime.engines import has_native
from micronet_lm.runtime.native import NativeEngine
from micronet_lm.runtime.reference import NumpyEngine

WORDS = LEAST.bounds[-1]


def table(**changes: Any) -> NgramTable:
    """After word 0 come 1 and 3, after 2 comes 0; after 0 1 comes 2."""
    keys: dict[str, Any] = {
        "share": 0.25,
        "bits": 2,
        "values": np.array([0.0625, 0.125, 0.25, 0.5], np.float32),
        "unigrams": np.array([1, *[0] * (WORDS - 1)], np.uint8),
        "orders": [
            TableOrder(
                contexts=np.arange(WORDS) % 2 == 0 if WORDS < 4 else np.isin(range(WORDS), (0, 2)),
                last=np.array([False, True, True]),
                words=np.array([1, 3, 0]),
                codes=np.array([3, 2, 1], np.uint8),
            ),
            TableOrder(
                contexts=np.array([True, False, False]),
                last=np.array([True]),
                words=np.array([2]),
                codes=np.array([3], np.uint8),
            ),
        ],
    }
    return NgramTable(**{**keys, **changes})


def with_order(number: int, **changes: Any) -> NgramTable:
    orders = list(table().orders)
    orders[number] = replace(orders[number], **changes)
    return table(orders=orders)


@pytest.fixture
def model() -> PackedModel:
    return replace(random_model(LEAST, Choice()), ngrams=table())


def test_the_bytes_are_those_of_the_page(model: PackedModel, tmp_path: Path) -> None:
    path = tmp_path / "m"
    write_packed(path, model)
    file = open_packed(path)
    metadata = json.loads(file.container.metadata)
    assert metadata["format"] == 2
    assert metadata["ngrams"] == {"order": 3, "bits": 2, "entries": [3, 1]}
    parts = {
        name: file.container.array(name).tobytes()
        for name in file.container.parts
        if name.startswith("ngrams.")
    }
    width = (WORDS - 1).bit_length()
    words = (1 | 3 << width | 0 << 2 * width).to_bytes((3 * width + 7) // 8, "little")
    assert parts == {
        "ngrams.share": struct.pack("<f", 0.25),
        "ngrams.values": struct.pack("<4f", 0.0625, 0.125, 0.25, 0.5),
        "ngrams.1.codes": b"\x01" + bytes((WORDS * 2 + 7) // 8 - 1),
        "ngrams.2.contexts": b"\x05" + bytes((WORDS + 7) // 8 - 1),
        "ngrams.2.last": b"\x06",
        "ngrams.2.words": words,
        "ngrams.2.codes": b"\x1b",  # 3, 2, 1
        "ngrams.3.contexts": b"\x01",
        "ngrams.3.last": b"\x01",
        "ngrams.3.words": b"\x02",
        "ngrams.3.codes": b"\x03",
    }
    again = read_packed(path)
    assert again.ngrams is not None
    assert again.ngrams.entries == (3, 1)
    np.testing.assert_array_equal(again.ngrams.orders[0].words, [1, 3, 0])


def test_the_example_of_the_page_is_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
    lines = [
        line.split(maxsplit=1)
        for line in page.splitlines()
        if re.match(r"ngrams\.\S+ +[0-9a-f]{2}( |$)", line)
    ]
    shown = {name: bytes.fromhex(digits) for name, digits in lines}
    orders = [replace(table().orders[0], contexts=np.isin(range(5), (0, 2))), table().orders[1]]
    own = table(unigrams=np.array([1, 0, 0, 0, 0], np.uint8), orders=orders)
    check_table(own, 5)
    assert shown == {name: part.tobytes() for name, part in table_parts(own).items()}


def test_a_file_without_a_table_is_of_format_1(model: PackedModel, tmp_path: Path) -> None:
    path = tmp_path / "m"
    write_packed(path, replace(model, ngrams=None))
    metadata = json.loads(open_packed(path).container.metadata)
    assert metadata["format"] == 1
    assert "ngrams" not in metadata


HOSTILE = {
    "share 1": (table(share=1.0), "share"),
    "share NaN": (table(share=float("nan")), "share|finite"),
    "values that fall": (
        table(values=np.array([0.0625, 0.25, 0.125, 0.5], np.float32)),
        "values.* increase",
    ),
    "a value of 0": (table(values=np.array([0, 0.1, 0.2, 0.3], np.float32)), "values.* increase"),
    "NaN": (table(values=np.array([0.1, 0.2, np.nan, 0.3], np.float32)), "values.* increase"),
    "too much mass": (table(values=np.array([0.1, 0.2, 0.6, 0.7], np.float32)), "sum to more"),
    "words that repeat": (with_order(0, words=np.array([3, 3, 0])), "do not increase"),
    "words that fall": (with_order(0, words=np.array([3, 1, 0])), "do not increase"),
    "no last": (with_order(0, last=np.array([False, True, False])), "one group"),
    "one last too many": (with_order(0, last=np.array([True, True, True])), "one group"),
    "a context too many": (with_order(0, contexts=np.isin(range(WORDS), (0, 1, 2))), "one group"),
}


def written(path: Path, model: PackedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a model without the writer's own checks."""
    with monkeypatch.context() as patched:
        patched.setattr("micronet_lm.artifact.writer.check_model", lambda model: None)
        write_packed(path, model)


def refused_by_all(path: Path, why: str) -> None:
    openers: list[Callable[[Path], Any]] = [read_packed, *([NativeEngine] if has_native() else [])]
    for opened in openers:
        with pytest.raises(ArtifactError, match=why) as caught:
            opened(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tables_are_refused(
    name: str, model: PackedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, why = HOSTILE[name]
    path = tmp_path / "m"
    with pytest.raises(ArtifactError, match="cannot be written"):
        write_packed(path, replace(model, ngrams=own))
    assert not path.exists()
    written(path, replace(model, ngrams=own), monkeypatch)
    refused_by_all(path, why)


def test_a_word_outside_the_vocabulary_is_refused(
    model: PackedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = 2 ** (WORDS - 1).bit_length() - 1
    if largest < WORDS:
        pytest.skip("every number of so many bits is a word")
    path = tmp_path / "m"
    own = with_order(0, words=np.array([1, largest, 0]))
    written(path, replace(model, ngrams=own), monkeypatch)
    refused_by_all(path, "outside the vocabulary")


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "format": ({"format": 5}, "format must be"),
    "ngrams in format 1": ({"format": 1}, "ngrams"),
    "order": ({"ngrams": {"order": 9, "bits": 2, "entries": [3, 1]}}, "order|range"),
    "bits": ({"ngrams": {"order": 3, "bits": 9, "entries": [3, 1]}}, "bits|range"),
    "more entries": ({"ngrams": {"order": 3, "bits": 2, "entries": [300, 1]}}, "ngrams.2|shape"),
    "too few numbers": ({"ngrams": {"order": 3, "bits": 2, "entries": [3]}}, "entries"),
    "no entries": ({"ngrams": {"order": 3, "bits": 2, "entries": [3, 0]}}, "entries|range"),
    "huge": (
        {"ngrams": {"order": 3, "bits": 2, "entries": [2**31 - 1, 1]}},
        "ngrams.2|shape",
    ),
    "unknown key": ({"ngrams": {"order": 2, "bits": 2, "entries": [3], "x": 1}}, "unknown"),
}


@pytest.mark.parametrize("name", LIES)
def test_metadata_that_lie_are_refused(name: str, model: PackedModel, tmp_path: Path) -> None:
    changes, why = LIES[name]
    path = tmp_path / "m"
    write_packed(path, model, with_checksum=False)  # which would notice
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    metadata = {**json.loads(header["__metadata__"]["micronet"]), **changes}
    header["__metadata__"]["micronet"] = json.dumps(metadata)
    text = json.dumps(header).encode()
    path.unlink()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])
    refused_by_all(path, why)


@pytest.mark.skipif(not has_native(), reason="the native engine is not built")
def test_flipped_bits_of_a_table_are_refused_by_both_or_by_none(
    model: PackedModel, tmp_path: Path
) -> None:
    path = tmp_path / "whole"
    write_packed(path, model, with_checksum=False)
    data = path.read_bytes()
    parts = [own for name, own in open_packed(path).container.parts.items() if "ngrams" in name]
    places = [place for own in parts for place in range(own.begin, own.end)]
    used = refused = 0
    for number, place in enumerate([*places, *places, *places]):
        flipped = bytearray(data)
        flipped[place] ^= 1 << (5 * number + number // len(places)) % 8
        file = tmp_path / str(number)
        file.write_bytes(flipped)
        try:
            engines: list[Engine] = [NumpyEngine(file)]
        except ArtifactError:
            refused += 1
            with pytest.raises(ArtifactError):
                NativeEngine(file)
            continue
        used += 1
        engines.append(NativeEngine(file))
        for engine in engines:
            session = engine.start()
            session.feed_many([0, 1, 2, 0, 1])
            total = np.exp(session.log_distribution().astype(np.float64)).sum()
            assert total == pytest.approx(1, abs=1e-5)
    assert used > 5
    assert refused > 20
