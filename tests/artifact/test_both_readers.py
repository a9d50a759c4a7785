"""One strictness: the same cases are accepted or refused by the Python and the native reader."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.engines import ENGINES
from tests.support.mutation import mutated
from tests.support.shapes import LEAST_NATIVE, changed

from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES
from micronet_lm.errors import ArtifactError
from micronet_lm.runtime.engines import has_native, open_engine

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "support" / "strictness.json").read_text()
)
CARD = "the card stands here"


def large(text: str) -> str:
    """Write out what the table abbreviates: digits D, nesting N, a long string S."""
    text = re.sub(r"D(\d+)", lambda m: "1" * int(m[1]), text)
    text = re.sub(r"N(\d+)", lambda m: "[" * int(m[1]) + "]" * int(m[1]), text)
    return re.sub(r"S(\d+)", lambda m: "s" * int(m[1]), text)


def colliding(count: int) -> list[bytes]:
    """Words of 8 bytes with the same low bits of the native engine's hash.

    Its steps are one-to-one, so they can be gone backwards from any hash.
    """
    first, second, every = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, (1 << 64) - 1
    words: list[bytes] = []
    number = 0
    while len(words) < count:
        number += 1
        h = number << 30  # the table's mask takes the low bits, which are all 0
        h ^= h >> 29 ^ h >> 58
        h = h * pow(first, -1, 1 << 64) & every
        h ^= h >> 32
        h = h * pow(second, -1, 1 << 64) & every
        h ^= 8 * first & every
        word = h.to_bytes(8, "little")
        try:
            usable = "\n" not in word.decode() and "\0" not in word.decode()
        except UnicodeDecodeError:
            continue
        if usable:
            words.append(word)
    return words


def vocabulary(kind: str, count: int) -> bytes:
    words = [f"word{number}".encode() for number in range(count)]
    if kind.startswith("collide"):
        words = colliding(count)
    if kind.endswith("twice"):
        words[-1] = words[0]
    odd = {
        "empty": b"",
        "latin": b"\xe9t\xe9",
        "surrogate": b"\xed\xa0\x80",
        "overlong": b"\xc0\xaf",
    }
    words[-1] = {**odd, "return": b"a\rb"}.get(kind, words[-1])
    return b"".join(word + b"\n" for word in words)


def spoiled(case: dict[str, Any], folder: Path) -> Path:
    """Write a packed file with the case in it."""
    path = folder / "model.safetensors"
    choice = Choice(cache=3, sparsity=0.4, bits=9, places=CODE_PLACES)
    model = replace(random_model(LEAST_NATIVE, choice), card={"x": CARD})
    if "fading" in case:
        faded = replace(choice, fade=7)
        model = replace(random_model(LEAST_NATIVE, faded), card={"x": CARD})
    if "words" in case:  # words that collide need a table that is large enough to be slow
        model = random_model(changed(LEAST_NATIVE, vocabulary=600), choice)
    write_packed(path, model, with_checksum=False)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    text = header["__metadata__"]["micronet"]
    if "card" in case:
        text = text.replace(json.dumps({"x": CARD}, separators=(",", ":")), large(case["card"]))
    if "metadata" in case:
        key, value = case["metadata"]
        text, count = re.subn(rf'"{key}":\d+', f'"{key}":{value}', text)
        assert count == 1
    if "fading" in case:
        key, value = case["fading"]
        entry = rf'"{key}":(\d+|false|null)'
        put = (entry, f'"{key}":{value}') if value else (f",{entry}", "")
        text, count = re.subn(*put, text)
        assert count == 1
    header["__metadata__"]["micronet"] = text
    if "words" in case:
        begin, end = header["vocabulary"]["data_offsets"]
        words = vocabulary(case["words"], model.shape.bounds[-1])
        rest = rest[:begin] + words + rest[end:]
        for entry in header.values():
            if (offsets := entry.get("data_offsets")) and offsets[0] > begin:
                entry["data_offsets"] = [place + len(words) - end + begin for place in offsets]
        header["vocabulary"]["data_offsets"] = [begin, begin + len(words)]
        header["vocabulary"]["shape"] = [len(words)]
    whole = json.dumps(header, ensure_ascii=False, separators=(",", ":"))
    if "header" in case:
        old, new = case["header"]
        assert f'"data_offsets":[{old}' in whole
        whole = whole.replace(f'"data_offsets":[{old}', f'"data_offsets":[{new}', 1)
    raw = whole.encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + rest)
    return path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_a_case_is_accepted_or_refused_by_all(
    case: dict[str, Any], engine: str, tmp_path: Path
) -> None:
    path = spoiled(case, tmp_path)
    try:
        open_engine(path, engine)  # type: ignore[arg-type]
    except ArtifactError as error:
        assert not case["accepted"], error
        assert "\n" not in str(error)
        return
    assert case["accepted"]


def inputs(count: int) -> Iterator[bytes]:
    """Yield mutations of small packed files of all kinds, the same ones each time."""
    seeds = Path(__file__).parents[2] / "native" / "fuzz" / "corpus" / "open"
    files = [file.read_bytes() for file in sorted(seeds.iterdir())]
    chance = random.Random(1)  # noqa: S311
    for number in range(count):
        yield mutated(files[number % len(files)], chance)


@pytest.mark.skipif(not has_native(), reason="needs the native engine")
def test_mutated_files_are_accepted_or_refused_by_both(tmp_path: Path) -> None:
    """Differential fuzzing, a short run; `both` of tests/fuzzing/readers.py is a long one."""
    path, agreed = tmp_path / "m", {True: 0, False: 0}
    for data in inputs(400):
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        found = []
        for read in (read_packed, lambda path: open_engine(path, "native")):
            try:
                read(path)
                found.append(True)
            except ArtifactError:
                found.append(False)
        assert found[0] == found[1], data
        agreed[found[0]] += 1
    assert min(agreed.values()) > 0
