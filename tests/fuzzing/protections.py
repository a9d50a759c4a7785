"""Remove protections one by one, and see that a test fails for each.

    python tests/fuzzing/protections.py [NUMBER ...]

Each is removed in a process of its own, by replacing the function that protects. A test that passes
without what it should protect is named, and the exit code is 1.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

ROOT = Path(__file__).parents[2]

Removal = tuple[str, str, Callable[..., Any]]
"""What is replaced, the test that must fail, and what stands there instead."""


def _followed(path: Path, flags: int) -> int:
    """Open as `open` does: links are followed, anything is opened."""
    return os.open(path, flags & ~os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)


def _kept(memo: Any, text: str, value: Any, parts: object = ()) -> Any:
    memo[text] = value
    return value


def _plain_tensor(reader: Any, name: str) -> Any:
    return reader._file.get_tensor(name)


def _raised(error: Exception) -> int:
    raise error


def _yaml(text: str) -> Any:
    import yaml

    return yaml.safe_load(text)


PROTECTIONS: list[Removal] = [
    (
        "micronet_lm.artifact.container._check_sum",
        "tests/test_checksum.py -k flipped_bit_of_a_packed",
        lambda part, _: part is not None,
    ),
    (
        "micronet_lm.runs.checkpoint.CheckpointReader.tensor",
        "tests/test_checksum.py -k flipped_bit_of_a_checkpoint",
        _plain_tensor,
    ),
    (
        "micronet_lm.runs.seal.seal_holds",
        "tests/test_checksum.py -k seal_notices",
        lambda _: None,
    ),
    (
        "micronet_lm.artifact.metadata.strict_json",
        "tests/artifact/test_both_readers.py -k test_a_case",
        lambda text, _: json.loads(text),
    ),
    (
        "micronet_lm.files._descriptor",
        "tests/test_files.py -k truncate_the_target",
        _followed,
    ),
    (
        "micronet_lm.files._descriptor",
        "tests/test_files.py -k follows_no_link",
        _followed,
    ),
    (
        "micronet_lm.config.strict_yaml._load",
        "tests/config/test_strict_yaml.py -k does_harm",
        _yaml,
    ),
    (
        "micronet_lm.corpus.memo.Memo.remember",
        "tests/corpus/test_tokenizers.py -k bounded_in_bytes",
        _kept,
    ),
    (
        "micronet_lm.corpus.download._Transfer._check_size",
        "tests/corpus/test_download.py -k beyond_its_size",
        lambda *_: None,
    ),
    (
        "micronet_lm.corpus.download._version",
        "tests/corpus/test_download.py -k another_version",
        lambda _: None,
    ),
    (
        "micronet_lm.cli.main._unexpected",
        "tests/test_files.py -k nobody_expected",
        _raised,
    ),
    (
        "micronet_lm.runtime.reference.session.check_room",
        "tests/runtime/test_owned.py -k cannot_be_filled",
        lambda _: None,
    ),
]


def fails(removal: Removal) -> bool:
    """Return whether the test fails without the protection."""
    place, test, instead = removal
    child = os.fork()
    if not child:
        file, _, names = test.partition(" -k ")
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        with patch(place, instead):
            code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", file, "-k", names])
        os._exit({0: 0, 1: 1}.get(int(code), 2))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        sys.exit(f"{test} did not run: code {code}")
    return code == 1


def main() -> None:
    """Remove the chosen protections."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    chosen = [int(word) for word in sys.argv[1:]] or range(len(PROTECTIONS))
    useless = []
    for number in chosen:
        found = fails(PROTECTIONS[number])
        place, test, _ = PROTECTIONS[number]
        sys.stdout.write(f"{number} {'fails' if found else 'PASSES'} without {place}: {test}\n")
        sys.stdout.flush()
        useless += [] if found else [test]
    sys.exit(bool(useless))


if __name__ == "__main__":
    main()
