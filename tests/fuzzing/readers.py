"""Fuzz the Python readers: recipes, packed files, downloads' names, recipes of runs.

    python tests/fuzzing/readers.py TARGET CORPUS [-max_total_time=60 ...]   # needs atheris
    python tests/fuzzing/readers.py TARGET --plain COUNT [SEED]              # without it

TARGET is `recipe`, `packed`, `both` (packed files by both readers, which must agree), `tokens`,
`checkpoint` or `personal` (personal memories, whose checksum is made right). With Atheris (from
PyPI) the fuzzer learns from the lines that it reaches; without it,
known good inputs are mutated. Whatever is not an error of this package ends the run.
"""

import importlib
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

atheris: Any = importlib.import_module("atheris") if find_spec("atheris") else None

from tests.support.mutation import mutated

from micronet_lm.artifact import read_packed
from micronet_lm.checksum import checksum
from micronet_lm.config import parse_recipe
from micronet_lm.config.strict_yaml import read_yaml
from micronet_lm.corpus.tokenizers import TOKENIZERS, tokenizer
from micronet_lm.errors import ArtifactError, ConfigError, PersonalError, RunError
from micronet_lm.runs import open_checkpoint
from micronet_lm.runtime.engines import open_engine
from micronet_lm.runtime.personal_file import Frame, Memories, decoded, encoded

FRAME = Frame(model=7, width=3, vocabulary=4, states=5, knows="the".__eq__)
MEMORIES = Memories(
    words=("é", "knob", "frobnicator"),
    counts=(1, 70_000, 3),
    following=np.array([0, 3, 4, 6, 5], np.int32),
    states=np.arange(15, dtype=np.float16).reshape(5, 3),
)
FILE = Path(tempfile.mkdtemp(prefix="micronet-fuzz-")) / "input.safetensors"


def recipe(data: bytes) -> None:
    """Read bytes as a recipe."""
    try:
        tree = read_yaml(data.decode("utf-8", "replace"))
        if isinstance(tree, dict):
            parse_recipe(tree, origin="fuzz")
    except ConfigError as error:
        assert "\n" not in str(error), error


def packed(data: bytes) -> None:
    """Read bytes as a packed file."""
    _written(data)
    try:
        read_packed(FILE)
    except ArtifactError as error:
        assert "\n" not in str(error), error


def both(data: bytes) -> None:
    """Read bytes as a packed file with both readers, which must agree."""
    _written(data)
    found = {}
    for name in ("numpy", "native"):
        try:
            open_engine(FILE, name)
            found[name] = "accepted"
        except ArtifactError as error:
            found[name] = str(error)
    accepted = [told == "accepted" for told in found.values()]
    assert accepted[0] == accepted[1], found


def tokens(data: bytes) -> None:
    """Split bytes as text and join it again."""
    text = data.decode("utf-8", "replace")
    for name in TOKENIZERS:
        one = tokenizer(name)
        again = one.join(one.tokens(text))
        assert one.join(one.tokens(again)) == again


def checkpoint(data: bytes) -> None:
    """Read bytes as a checkpoint."""
    _written(data)
    try:
        with open_checkpoint(FILE) as reader:
            _ = reader.progress
            for name in reader.names:
                reader.tensor(name)
    except RunError:
        pass


def personal(data: bytes) -> None:
    """Read bytes as a personal memory, with a checksum that is right."""
    body = data[:-8]
    sealed = body + int(checksum(body), 16).to_bytes(8, "little")
    for given in (data, sealed):
        try:
            found = decoded(given, FRAME)
        except PersonalError as error:
            assert "\n" not in str(error), error
        else:
            assert encoded(found, FRAME) == given


def _written(data: bytes) -> None:
    FILE.unlink(missing_ok=True)
    FILE.write_bytes(data)


def instrument() -> None:
    """Let Atheris see what the readers execute.

    It could do so while they are imported, but not by the loader of a package that is installed
    in place: then it would learn nothing.
    """
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] not in ("micronet_lm", "yaml", "json"):
            continue
        owners = [module, *(one for one in vars(module).values() if isinstance(one, type))]
        for owner in owners:
            for value in list(vars(owner).values()):
                inside = (
                    getattr(value, part, None) for part in ("__wrapped__", "__func__", "fget")
                )
                for function in (value, *inside):
                    if isinstance(function, FunctionType) and function.__module__ == name:
                        atheris.instrument_func(function)


TARGETS: dict[str, Callable[[bytes], None]] = {
    one.__name__: one for one in (recipe, packed, both, tokens, checkpoint, personal)
}


def seeds(target: str) -> list[bytes]:
    """Return known good inputs."""
    if target == "recipe":
        presets = ROOT / "src" / "micronet_lm" / "presets"
        return [file.read_bytes() for file in sorted(presets.rglob("*.yaml"))]
    if target == "personal":
        return [encoded(MEMORIES, FRAME), encoded(Memories.none(FRAME.width), FRAME)]
    if target == "tokens":
        # Lines, not pages: a fuzzer learns more from many short texts than from a few long ones.
        pages = sorted((ROOT / "docs").glob("*.md"))
        lines = {line for page in pages for line in page.read_bytes().splitlines()[:9] if line}
        return sorted(line[:128] for line in lines)
    return [
        file.read_bytes()
        for file in sorted((ROOT / "native" / "fuzz" / "corpus" / "open").iterdir())
    ]


def plain(target: str, count: int, seed: int) -> None:
    """Run a target on mutations of its seeds."""
    chance, inputs = random.Random(seed), seeds(target)  # noqa: S311
    for number in range(count):
        spoil = _spoiled if target in ("recipe", "tokens") else mutated
        data = spoil(inputs[number % len(inputs)], chance)
        try:
            TARGETS[target](data)
        except BaseException:
            Path("crash.bin").write_bytes(data)
            raise
    sys.stdout.write(json.dumps({"target": target, "inputs": count, "seed": seed}) + "\n")


def _spoiled(data: bytes, chance: random.Random) -> bytes:
    """Return text with a few changes: other bytes, signs of YAML, parts twice."""
    for _ in range(chance.randint(1, 4)):
        at, size = chance.randrange(len(data) + 1), chance.randrange(40)
        signs = chance.choice([b"&a ", b"*a", b"!!", b"[", b"{", b": ", b"\n- ", b"\xff", b"1e999"])
        new = chance.choice([b"", signs, data[at : at + size], bytes([chance.randrange(256)])])
        data = data[:at] + new + data[at + chance.randrange(4) :]
    return data


def main() -> None:
    """Read the command line and run a target."""
    target = sys.argv[1]
    if "--plain" in sys.argv:
        rest = [int(word) for word in sys.argv[3:]]
        plain(target, rest[0], rest[1] if len(rest) > 1 else 1)
        return
    if atheris is None:
        sys.exit("this needs atheris (pip install atheris), or --plain COUNT")
    corpus = Path(sys.argv[2])
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(target)):
        (corpus / f"seed-{number}").write_bytes(data)
    instrument()
    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
