"""Prefix codes: the best ones, written and read; files with them by both readers, or damaged."""

import heapq
import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines import ENGINES
from tests.support.shapes import CODED

from micronet_lm.artifact import PackedModel, open_packed, read_packed, write_packed
from micronet_lm.artifact.coded_integers import coded_integers, integers_of, read_coded
from micronet_lm.artifact.coded_words import coded_words, decode_words
from micronet_lm.artifact.prefix_codes import (
    LONGEST,
    check_lengths,
    code_lengths,
    codes_of,
    decode_blocks,
)
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.artifact.writer import vocabulary_bytes
from micronet_lm.cli.main import main
from micronet_lm.config import CODE_PLACES
from micronet_lm.errors import ArtifactError
from micronet_lm.runtime.engines import Name, has_native, open_engine
from micronet_lm.runtime.places import shipped_model


def huffman_bits(counts: list[int]) -> int:
    """The bits of the best code without a limit, by Huffman's own algorithm."""
    heap = [count for count in counts if count]
    heapq.heapify(heap)
    total = 0
    while len(heap) > 1:
        both = heapq.heappop(heap) + heapq.heappop(heap)
        total += both
        heapq.heappush(heap, both)
    return total


@given(
    st.lists(st.integers(0, 50), min_size=2, max_size=60).filter(lambda c: sum(map(bool, c)) > 1)
)
def test_lengths_are_the_best(counts: list[int]) -> None:
    lengths = code_lengths(np.array(counts))
    check_lengths(lengths, "it")
    assert (lengths > 0).tolist() == [count > 0 for count in counts]
    assert int((lengths * np.array(counts)).sum()) == huffman_bits(counts)  # far below 12 bits


def test_no_code_is_longer_than_12_bits() -> None:
    fibonacci = [1, 1]
    while len(fibonacci) < 30:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    lengths = code_lengths(np.array(fibonacci))
    assert lengths.max() == LONGEST
    check_lengths(lengths, "it")


def test_codes_are_prefix_free_and_canonical() -> None:
    lengths = np.array([2, 0, 1, 3, 3], np.uint8)
    written = [
        f"{int(code):0{n}b}"[::-1] for code, n in zip(codes_of(lengths), lengths, strict=True)
    ]
    assert written[2] == "0"
    assert (written[0], written[3], written[4]) == ("10", "110", "111")


@pytest.mark.parametrize("bits", range(2, 11))
@pytest.mark.parametrize("count", [2, 1023, 1024, 1025, 3000])
def test_integers_come_back(bits: int, count: int) -> None:
    rng = np.random.default_rng(bits)
    most = 2 ** (bits - 1) - 1
    integers = np.clip(np.rint(rng.laplace(0, most / 4, count)), -most, most).astype(np.int16)
    integers[:2] = most, -most
    coded = coded_integers(integers, bits)
    assert coded is not None
    (symbols,) = decode_blocks([read_coded("a", coded, count, bits)])
    assert np.array_equal(integers_of(symbols, bits), integers)


def test_several_tensors_are_decoded_together() -> None:
    rng = np.random.default_rng(0)
    tensors = [rng.integers(-3, 4, n).astype(np.int16) for n in (5, 2048, 1500, 7)]
    parts = [read_coded("a", coded_integers(t, 3), t.size, 3) for t in tensors]  # type: ignore[arg-type]
    for found, own in zip(decode_blocks(parts), tensors, strict=True):
        assert np.array_equal(integers_of(found, 3), own)


@settings(max_examples=60)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1),
        min_size=1,
        unique=True,
    )
)
def test_words_come_back(words: list[str]) -> None:
    assert decode_words(coded_words(words), len(words)) == vocabulary_bytes(words).tobytes()


def test_the_bytes_are_those_of_the_page() -> None:
    followed = bytearray(32)
    for byte in (0x0A, 0x61, 0x62, 0x63):
        followed[byte // 8] |= 1 << byte % 8
    literal = bytes.fromhex("08000000 1100000000000000") + bytes(followed)
    literal += bytes.fromhex("01616211 01626311 000a01 000a01 3001")
    assert coded_words(["ab", "ac", "b"]).tobytes() == literal
    # Integers −1, 0, 0, 1 of 2 bits: 0 has one bit, the others two; one block of one byte.
    coded = coded_integers(np.array([-1, 0, 0, 1], np.int16), 2)
    assert coded is not None
    assert coded.tobytes() == bytes.fromhex("1202 0100 31")


@pytest.fixture(scope="module")
def model() -> PackedModel:
    choice = Choice(cache=5, sparsity=0.4, bits=6, places=CODE_PLACES)
    return replace(random_model(CODED, choice), coded=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_coded_file_is_the_same_model(model: PackedModel, tmp_path: Path, engine: Name) -> None:
    paths = [tmp_path / "coded", tmp_path / "plain"]
    write_packed(paths[0], model)
    write_packed(paths[1], replace(model, coded=False))
    ids = np.arange(40) % model.shape.bounds[-1]
    coded, plain = (open_engine(path, engine) for path in paths)
    assert np.array_equal(coded.score(ids), plain.score(ids))
    assert [coded.word(i) for i in range(6)] == [plain.word(i) for i in range(6)]
    again = read_packed(paths[0])
    assert again.coded
    assert list(again.words) == list(model.words)
    for name, weights in model.tensors.items():
        assert np.array_equal(again.tensors[name].values, weights.values), name


@pytest.mark.parametrize("engine", ENGINES)
def test_the_shipped_model_becomes_smaller_and_stays_the_same(
    tmp_path: Path, engine: Name, capsys: pytest.CaptureFixture[str]
) -> None:
    small, back = tmp_path / "small", tmp_path / "back"
    assert main(["pack", str(shipped_model()), "-o", str(small), "--coded", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == small.stat().st_size < 0.92 * shipped_model().stat().st_size
    ids = np.arange(60) * 37 % 7000
    own, other = open_engine(shipped_model(), engine), open_engine(small, engine)
    assert np.array_equal(own.score(ids), other.score(ids))
    assert other.find("dictionary") == own.find("dictionary")
    assert main(["pack", str(small), "-o", str(back), "--plain"]) == 0
    assert back.read_bytes() == shipped_model().read_bytes()
    assert main(["inspect", str(small)]) == 0
    assert main(["pack", str(small), "-o", str(back)]) == 2
    assert "give --coded or --plain" in capsys.readouterr().err


@pytest.mark.skipif(not has_native(), reason="needs the native engine")
def test_damaged_codes_are_refused_by_both_readers(model: PackedModel, tmp_path: Path) -> None:
    path, hurt = tmp_path / "m", tmp_path / "hurt"
    write_packed(path, model, with_checksum=False)
    parts = open_packed(path).container.parts
    data = path.read_bytes()
    coded = [part for name, part in parts.items() if name.endswith(".coded")]
    assert len(coded) > 5
    chance, refused = random.Random(0), 0  # noqa: S311
    for _ in range(150):
        part = chance.choice(coded)
        at = chance.randrange(part.begin, part.end)
        changed = bytearray(data)
        changed[at] ^= 1 << chance.randrange(8)
        hurt.write_bytes(changed)
        answers: list[bytes | None] = []
        for engine in ENGINES:
            try:
                answers.append(open_engine(hurt, engine).score([0, 1, 0, 1]).tobytes())
            except ArtifactError:
                answers.append(None)
        assert (answers[0] is None) == (answers[1] is None), at
        refused += answers[0] is None
    assert refused > 20  # a changed code changes where its block ends


def test_lengths_that_are_no_code_are_refused() -> None:
    for lengths in ([1, 1, 1], [1, 2], [13, 13], [0, 0], [1, 0]):
        with pytest.raises(ArtifactError, match="complete code"):
            check_lengths(np.array(lengths, np.uint8), "it")
    check_lengths(np.array([1, 0], np.uint8), "it", alone=True)
    with pytest.raises(ArtifactError, match="cannot hold"):
        decode_words(np.array([255] * 60, np.uint8), 5)
