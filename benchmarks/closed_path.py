"""Processor time on texts without new words, with and without what an open vocabulary adds.

    python benchmarks/closed_path.py [MODEL] [--before _native.so] [--rounds 15]

Each way has a process of its own, and a round asks all of them in turn; ratios are taken within a
round. `plain`: a file without a spelling model, a session that has no words of its own. `open`: the
same file with a spelling model, a session that has learned 100 words, and texts scored as those
with new words are. Both have read as many tokens before: where one has new words, the other has
`<unk>`. `before`: as `plain`, by another build of the engine, such as one of an earlier commit.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.runtime.places import packed_file
from micronet_lm.spelling import estimate

NEW, STEPS, SCORED = 100, 100, 2000
SPELLING = 40_000
"""Bytes of the spelling model, where the file has none."""
MODULE = "micronet_lm.runtime._native"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path, nargs="?", default=Path("demo"))
    parser.add_argument("--before", type=Path, help="another build of the engine's Python module")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.model, arguments.worker, arguments.before)
        return
    with tempfile.TemporaryDirectory() as name:
        files = write_files(packed_file(arguments.model), Path(name))
        ways = {"plain": files["plain"], "open": files["open"]}
        if arguments.before:
            ways["before"] = files["plain"]
        workers = {way: started(way, file, arguments.before) for way, file in ways.items()}
        rounds = [
            {way: asked(worker) for way, worker in workers.items()}
            for _ in range(arguments.rounds + 1)
        ][1:]  # the first one prepares
        for worker in workers.values():
            worker.communicate()
    if arguments.json:
        print(json.dumps({"model": str(arguments.model), "rounds": rounds}))
        return
    others = [way for way in workers if way != "plain"]
    print("| | plain, µs | " + " | ".join(f"{way} / plain" for way in others) + " |")
    print("|---" * (2 + len(others)) + "|")
    for what in rounds[0]["plain"]:
        cells = [f"{median(one['plain'][what] for one in rounds):,.1f}"]
        for way in others:
            ratios = sorted(one[way][what] / one["plain"][what] for one in rounds)
            cells.append(f"{median(ratios):.3f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        print(f"| {what} | " + " | ".join(cells) + " |")


def write_files(path: Path, folder: Path) -> dict[str, Path]:
    """Write the model with and without a spelling model."""
    model = read_packed(path)
    known = [word for word in model.words if word != UNK]
    spelling = model.spelling or estimate(known[-5000:], known, order=5, budget=SPELLING)
    files = {"plain": folder / "plain.safetensors", "open": folder / "open.safetensors"}
    write_packed(files["plain"], replace(model, spelling=None))
    write_packed(files["open"], replace(model, spelling=spelling))
    return files


def started(way: str, file: Path, before: Path | None) -> subprocess.Popen[str]:
    """Start the process of one way."""
    words = [sys.executable, __file__, str(file), "--worker", way]
    if way == "before":
        words += ["--before", str(before)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def asked(worker: subprocess.Popen[str]) -> dict[str, float]:
    """Let a process measure once; return microseconds per token."""
    assert worker.stdin is not None  # noqa: S101
    assert worker.stdout is not None  # noqa: S101
    worker.stdin.write("measure\n")
    worker.stdin.flush()
    found: dict[str, float] = json.loads(worker.stdout.readline())
    return found


def work(file: Path, way: str, before: Path | None) -> None:
    """Measure once for each line of standard input."""
    if before is not None:
        spec = importlib.util.spec_from_file_location(MODULE, before)
        assert spec is not None  # noqa: S101
        assert spec.loader is not None  # noqa: S101
        sys.modules[MODULE] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[MODULE])
    from micronet_lm.runtime.native import NativeEngine

    engine = NativeEngine(file)
    size, unknown = engine.vocabulary_size, engine.find(UNK)
    assert unknown is not None  # noqa: S101
    drawn = np.random.default_rng(1).random(SCORED)
    text = (size * drawn**3).astype(np.int64)
    text[text == unknown] = 0
    session = engine.start()
    for number, token in enumerate(text[:NEW].tolist()):
        word = session.add(f"qz{number}") if way == "open" else unknown
        session.feed_many([token, word])
    room = np.empty(size, np.float32)

    def every() -> None:
        own = session.fork()
        for token in text[:STEPS].tolist():
            own.feed(token)
            own.log_distribution(room)

    def best() -> None:
        own = session.fork()
        for token in text[:STEPS].tolist():
            own.feed(token)
            own.top_k(5)

    def scored() -> None:
        if way == "open":
            engine.score_open(text, [])
        else:
            engine.score(text)

    measures: dict[str, tuple[Callable[[], None], int]] = {
        "a step, all probabilities": (every, STEPS),
        "a step, best 5": (best, STEPS),
        "scoring": (scored, SCORED),
    }
    for _ in sys.stdin:
        found = {}
        for what, (run, tokens) in measures.items():
            begin = time.process_time()
            run()
            found[what] = 1e6 * (time.process_time() - begin) / tokens
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
