"""The engine for browsers: not stale, small, and the same answers as the native engine's."""

import hashlib
import json
import os
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.shapes import LEAST_NATIVE, ONE_LAYER

import micronet_lm as mn
from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES
from micronet_lm.runtime.engines import has_native
from micronet_lm.runtime.native import NativeEngine
from micronet_lm.runtime.places import shipped_model

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
MODULE = WEB / "dist" / "micronet.wasm"
# Without V8's background threads: Node may deadlock with them, a compiler's thread waiting for a
# collection and the main thread for the compiler (nodejs/node, issue 54918).
NODE_TESTS = ["node", "--single-threaded", "--test", "--test-concurrency=1"]
POSITIONS = int(os.environ.get("MICRONET_WEB_POSITIONS", "150"))
TEXTS = ["Return a new", "Raise ValueError if the ", "", 'print("é, ß") — 中文\n', "the"]
TEXTS += ["It is so. ", "Return a dictoin", "the FROBNICATOR and the Frobnicator. The frobm"]
BROTLI = """
const { readFileSync } = require("fs");
console.log(require("zlib").brotliCompressSync(readFileSync(process.argv[1])).length);
"""
CHOICES = {
    "9 bits": Choice(cache=5, bits=9, places=CODE_PLACES),
    "8 bits": Choice(cache=5, bits=8, places=CODE_PLACES),
    "pruned": Choice(cache=5, sparsity=0.5, bits=9, places=CODE_PLACES),
    "unquantized": Choice(cache=5),
    "fading": Choice(cache=50, fade=9, bits=8, places=CODE_PLACES),
    "hostile": Choice(cache=3, sparsity=0.4, bits=9, places=CODE_PLACES),
}


def test_the_module_is_not_stale() -> None:
    made = runpy.run_path(str(WEB / "sources.py"))
    recorded = made["RECORD"].read_text(encoding="utf-8")
    message = (
        "the native sources changed, or the module is not the one made of them: run 'make web'"
    )
    assert made["fingerprint"]() == recorded, message


def test_the_module_is_small_and_the_documents_say_how_small() -> None:
    size = MODULE.stat().st_size
    assert size <= 300_000
    documented = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    assert f"{size:,} bytes, " in documented
    if not node_is_new_enough():
        pytest.skip("Node 20 or newer, which has Brotli, is not installed")
    said = subprocess.run(
        ["node", "-e", BROTLI, MODULE], capture_output=True, text=True, check=True
    )
    assert int(said.stdout) <= 90_000
    assert f"{size:,} bytes, {int(said.stdout):,} as Brotli" in documented


def test_the_versions_agree() -> None:
    package = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == mn.__version__


def node_is_new_enough() -> bool:
    node = shutil.which("node")
    if not node:
        return False
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return int(said.lstrip("v").split(".")[0] or 0) >= 20


@pytest.mark.filterwarnings("ignore::micronet_lm.UnknownWordsWarning")
@pytest.mark.skipif(not node_is_new_enough(), reason="Node 20 or newer is not installed")
@pytest.mark.skipif(not has_native(), reason="the native engine is not built")
def test_the_answers_are_those_of_the_scalar_kernels(tmp_path: Path) -> None:
    cases = [described("demo", shipped_model(), with_texts=True)]
    for name, choice in CHOICES.items():
        path = tmp_path / f"{name}.safetensors"
        shape = LEAST_NATIVE if name == "hostile" else ONE_LAYER
        write_packed(path, random_model(shape, choice))
        cases.append(described(name, path, with_texts=False))
    written = tmp_path / "cases.json"
    written.write_text(json.dumps(cases), encoding="utf-8")
    done = subprocess.run(
        [*NODE_TESTS, *map(str, sorted((WEB / "test").glob("*.test.js")))],
        env={**os.environ, "MICRONET_CASES": str(written)},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def described(name: str, path: Path, *, with_texts: bool) -> dict[str, Any]:
    """Say what the native scalar kernels and Python make of a model."""
    engine = NativeEngine(path, kernels="scalar")
    session = engine.start()
    ids = np.random.default_rng(1).integers(0, engine.vocabulary_size, POSITIONS).tolist()
    hashes = []
    for token in ids:
        session.feed(token)
        hashes.append(hashlib.sha256(session.log_distribution().tobytes()).hexdigest())
    case = {"name": name, "path": str(path), "ids": ids, "hashes": hashes}
    if with_texts:
        case["texts"] = [answers(mn.LM(engine), text) for text in TEXTS]
    return case


def answers(lm: mn.LM, text: str) -> dict[str, Any]:
    scored = lm.score(text) if len(lm.encoder.tokens(text)) > 1 else None
    return {
        "text": text,
        "topK": lm.top_k(text, 5),
        "suggest": lm.suggest(text, 3),
        "replaces": lm.suggest(text, 3).replaces,
        "complete": lm.complete(text, "re", 4),
        "score": scored.log_probability if scored else 0.0,
        "generate": "".join(lm.generate(text, 15, temperature=0.7, seed=3)),
    }
