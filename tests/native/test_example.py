"""The C example: built as its users would, and run."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.support.shapes import ONE_LAYER

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.runtime.native import NativeEngine

NATIVE = Path(__file__).parents[2] / "native"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("example")
    options = ["-DMICRONET_TESTS=ON", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0"]
    for command in (
        ["cmake", "-S", str(NATIVE), "-B", str(build), *options],
        ["cmake", "--build", str(build), "--target", "next_words", "--parallel", "2"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "next_words"


def run(example: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([example, *words], capture_output=True, text=True, check=False)


def test_it_prints_the_next_words(example: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(ONE_LAYER, Choice(cache=5)))
    engine = NativeEngine(path)
    session = engine.start()
    unknown = engine.find("<unk>")
    the = engine.find("the")
    assert unknown is not None and the is not None
    session.feed_many([the, unknown, the])
    ids, scores = session.top_k(5)
    lines = [f"{np.exp(s):.6f} {engine.word(int(i))}" for i, s in zip(ids, scores, strict=True)]
    done = run(example, str(path), "the", "zebra", "the")
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()] == [x.split()[1] for x in lines]
    got = [float(line.split()[0]) for line in done.stdout.splitlines()]
    np.testing.assert_allclose(got, np.exp(scores), atol=1e-5)


def test_it_says_what_is_wrong(example: Path, tmp_path: Path) -> None:
    assert run(example).returncode == 2
    missing = run(example, str(tmp_path / "none"), "the")
    assert missing.returncode == 1
    assert "cannot be opened" in missing.stderr
    broken = tmp_path / "broken"
    broken.write_bytes(b"not a model at all")
    assert "next_words: the header claims" in run(example, str(broken), "the").stderr
