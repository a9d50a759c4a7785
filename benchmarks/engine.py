"""Compare the native engine with torch, ONNX Runtime and the speed of memory, on one thread.

A packed model of the paper's student (vocabulary 267,735, cache 3000, 36 % sparse, random weights)
predicts word after word of a text whose words fall into the bins as those of WikiText-103's test
split do, and follow Zipf's law within them. A step ends with the log-probabilities of all words;
all contenders alternate, and ratios are taken within each round, because machines are noisy. torch
and ONNX Runtime compute with the same weights, converted to fp32.

`read` is the time to read as many bytes as the weights have, once: as fp32, int16 and int8, and in
the bits that native holds them in. No engine that reads every weight in that form can be faster.
Weights of a few megabytes stay in the processor's caches from step to step, if nothing else runs.
So there are two pairs of times: `native` and `read` use the same bytes in every step; `from memory`
they alternate between so many copies that every step has its weights in memory only.

    python benchmarks/engine.py --json
"""

import argparse
import ctypes
import json
import mmap
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from micronet_lm.accounting.recipe_target import PAPER_BINS, PAPER_SHARES
from micronet_lm.model import LanguageModel, Memory, StreamState
from micronet_lm.runtime.native import NativeEngine
from micronet_lm.training import evaluate
from packed_models import paper_student, torch_model
from streaming_step import NAMES, Stream, StreamingStep, export

THREADS = 1
WORDS = PAPER_BINS[0]
CACHE = 3_000
SPARSITY = 0.36


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bits", type=int, nargs="*", default=[9, 8])
    parser.add_argument("--steps", type=int, default=30, help="steps of each per round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--kernels", default="auto", help="native kernels: auto, avx2, scalar …")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--scored", type=int, default=8_000, help="tokens of the scored text")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for bits in arguments.bits:
            path = Path(folder) / f"student-{bits}.safetensors"
            paper_student(path, bits=bits, cache=CACHE, sparsity=SPARSITY, vocabulary=WORDS)
            results.append(measure(path, bits, arguments))
    report = {"threads": THREADS, "rounds": arguments.rounds, "results": results}
    if arguments.json:
        print(json.dumps(report))
        return
    for result in results:
        show(result)


def measure(path: Path, bits: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure everything about one file."""
    model = torch_model(path)
    contenders, notes = dict(step_contenders(path, model, arguments)), {}
    if "compile_error" in contenders:
        notes["compiled"] = contenders.pop("compile_error")
    weights = model.parameter_count()
    held = max(bits, 8) if bits <= 9 else 16  # bits that native holds a weight in
    sizes = {kind: round(weights * size) for kind, size in (*SIZES.items(), ("held", held / 8))}
    reads = {f"read as {kind}": reading(size, 1) for kind, size in sizes.items()}
    for kind in ("int8", "int16", "held"):
        reads[f"read as {kind} from memory"] = reading(sizes[kind], BEYOND_CACHES // sizes[kind])
    reads["read as held from memory, large pages"] = reading(
        sizes["held"], BEYOND_CACHES // sizes["held"], large_pages=True
    )
    steps = text(1, arguments.steps).tolist()
    times: dict[str, list[float]] = {name: [] for name in (*contenders, *reads)}
    for name in contenders:
        contenders[name](steps[:3])
    for _ in range(arguments.rounds):
        for name, run in {**contenders, **reads}.items():
            run(steps[:2])  # the previous contender has filled the processor's caches
            begin = time.perf_counter()
            run(steps)
            times[name].append((time.perf_counter() - begin) / len(steps))
    native, whole = times["native"], "int8" if bits <= 8 else "int16"
    eager = fastest(times, ["torch model", "torch step"])
    onnx = fastest(times, ["onnx fp32", "onnx int8"])
    return {
        "bits": bits,
        "kernels": NativeEngine(path).kernels,
        "file_bytes": path.stat().st_size,
        "weights": weights,
        "microseconds": {name: round(1e6 * statistics.median(t), 1) for name, t in times.items()},
        "ratios": {
            "native full step, times faster than the torch model": ratio(
                times["torch model"], native
            ),
            "native full step, times faster than the faster eager torch": ratio(eager, native),
            "native full step, times faster than compiled torch": ratio(
                times["torch compiled"], native
            )
            if "torch compiled" in times
            else notes["compiled"],
            "native full step, times faster than ONNX Runtime": ratio(onnx, native),
            f"native full step, times reading {whole}": ratio(native, times[f"read as {whole}"]),
            "native full step, times reading what it holds": ratio(native, times["read as held"]),
            f"native full step, times reading {whole} from memory": ratio(
                native, times[f"read as {whole} from memory"]
            ),
            "native full step, times reading what it holds from memory": ratio(
                native, times["read as held from memory"]
            ),
            f"native full step from memory, times reading {whole} from memory": ratio(
                times["native from memory"], times[f"read as {whole} from memory"]
            ),
            "native full step from memory, times reading what it holds from memory": ratio(
                times["native from memory"], times["read as held from memory"]
            ),
            "native full step from memory, times reading what it holds from large pages": ratio(
                times["native from memory"], times["read as held from memory, large pages"]
            ),
            "native top 5, times faster than the torch model's full step": ratio(
                times["torch model"], times["native top 5"]
            ),
            "native top 5, times faster than the faster eager torch's full step": ratio(
                eager, times["native top 5"]
            ),
        },
        "open": opening(path),
        "scoring": scoring(path, model, arguments.scored),
    }


SIZES = {"fp32": 4, "int16": 2, "int8": 1}
BEYOND_CACHES = 300_000_000
"""Bytes of all copies together: ten times the caches of a large processor."""


def text(seed: int, count: int) -> NDArray[np.int64]:
    """Return random words: bins as in WikiText-103's test split, Zipf's law within a bin."""
    frequency = 1 / (np.arange(WORDS) + 3.0)
    words, cutoffs = PAPER_BINS
    for (first, last), tokens in zip(pairwise((0, *cutoffs, words)), PAPER_SHARES, strict=True):
        frequency[first:last] *= tokens / frequency[first:last].sum()
    return np.random.default_rng(seed).choice(WORDS, count, p=frequency / frequency.sum())


def step_contenders(
    path: Path, model: LanguageModel, arguments: argparse.Namespace
) -> Iterator[tuple[str, Any]]:
    """Yield everything that can do a step, as functions of a list of words, with full caches."""
    engine = NativeEngine(path, kernels=arguments.kernels)
    warm = text(0, CACHE + 200)

    def native(
        engines: list[NativeEngine], answer: Callable[[Any, Any], object]
    ) -> Callable[[list[int]], None]:
        sessions = [engine.start() for engine in engines]
        for session in sessions:
            session.feed_many(warm)
        turns = cycle(sessions)
        buffer = np.empty(WORDS, np.float32)

        def run(words: list[int]) -> None:
            for word, session in zip(words, turns, strict=False):
                session.feed(word)
                answer(session, buffer)

        return run

    def full(session: Any, buffer: Any) -> object:
        return session.log_distribution(buffer)

    yield "native", native([engine], full)
    copies = BEYOND_CACHES // path.stat().st_size
    yield (
        "native from memory",
        native([NativeEngine(path, kernels=arguments.kernels) for _ in range(copies)], full),
    )
    yield "native top 5", native([engine], lambda session, _: session.top_k(5))
    yield "torch model", eager_model(model)
    step = StreamingStep(model).eval()
    yield "torch step", written_out(step, model)
    if not arguments.no_compile:
        try:
            compiled = torch.compile(step, dynamic=False)
            run = written_out(compiled, model)
            run([0, 1])
            yield "torch compiled", run
        except Exception as error:  # a compiler may fail in any way
            yield "compile_error", f"did not compile: {type(error).__name__}"
    else:
        yield "compile_error", "left out"
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "step.onnx"
        export(step, Stream(model), graph)
        yield "onnx fp32", onnx_step(graph, model)
        yield "onnx int8", onnx_step(dynamic_int8(graph), model)


def eager_model(model: LanguageModel) -> Callable[[list[int]], None]:
    """Return the unchanged torch model, one token at a time."""
    stream = Stream(model)
    state = StreamState(
        keys=tuple(k[None] for k in stream.keys),
        values=tuple(v[None] for v in stream.values),
        seen=model.config.context - 1,
    )
    memory: Memory | None = Memory(states=stream.states[None], words=stream.words[None])

    @torch.no_grad()
    def run(words: list[int]) -> None:
        nonlocal state, memory
        for word in words:
            hidden, state = model(torch.tensor([[word]]), state)
            model.log_distribution(hidden, memory=memory)
            memory = model.remember(memory, hidden, torch.tensor([[word]]))

    return run


def written_out(step: Callable[..., Any], model: LanguageModel) -> Callable[[list[int]], None]:
    """Return the step as a fixed graph, in torch."""
    stream = Stream(model)

    @torch.no_grad()
    def run(words: list[int]) -> None:
        for word in words:
            _, keys, values, hidden = step(*stream.arguments(word))
            stream.advance(keys, values, hidden, word)

    return run


def dynamic_int8(graph: Path) -> Path:
    """Return the graph with 8-bit matrices and activations quantized at run time."""
    import onnx
    from onnxruntime.quantization import (
        QuantType,
        quantize_dynamic,
    )

    loaded = onnx.load(graph)
    del loaded.graph.value_info[:]  # the exporter's shapes contradict transposed constants
    plain, narrow = graph.with_name("plain.onnx"), graph.with_name("int8.onnx")
    onnx.save(loaded, plain)
    quantize_dynamic(plain, narrow, weight_type=QuantType.QInt8)
    return narrow


def onnx_step(graph: Path, model: LanguageModel) -> Callable[[list[int]], None]:
    """Return the exported step in ONNX Runtime."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    stream = Stream(model)

    def run(words: list[int]) -> None:
        for word in words:
            given = [tensor.numpy() for tensor in stream.arguments(word)]
            answer = session.run(None, dict(zip(NAMES, given, strict=True)))
            stream.advance(*map(torch.from_numpy, answer[1:]), word)

    return run


def reading(size: int, copies: int, *, large_pages: bool = False) -> Callable[[list[int]], None]:
    """Read `size` bytes once per step, as fast as the C library can search for a byte."""

    def memory() -> ctypes.Array[ctypes.c_char]:
        pages = mmap.mmap(-1, size)
        if large_pages and hasattr(mmap, "MADV_HUGEPAGE"):
            pages.madvise(mmap.MADV_HUGEPAGE)
        pages.write(b"\x02" * size)
        return (ctypes.c_char * size).from_buffer(pages)

    turns = cycle([memory() for _ in range(copies)])
    find = ctypes.CDLL(None).memchr
    find.argtypes, find.restype = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t], ctypes.c_void_p

    def run(words: list[int]) -> None:
        for _, data in zip(words, turns, strict=False):
            if find(data, 1, size) is not None:
                raise AssertionError("found what is not there")

    return run


def opening(path: Path) -> dict[str, float]:
    """Return the time to open the file, and the memory that opening and using it adds."""
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        NativeEngine(path)
        times.append(time.perf_counter() - begin)
    program = (
        "import sys; from micronet_lm.runtime.native import NativeEngine\n"
        "def memory():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(int(l.split()[1]) for l in lines if l.startswith('VmHWM')) * 1024\n"
        "before = memory(); engine = NativeEngine(sys.argv[1]); session = engine.start()\n"
        "session.feed_many(list(range(3200))); session.log_distribution(); session.top_k(5)\n"
        "print(memory() - before)\n"
    )
    grown = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, check=True, text=True
    )
    size = path.stat().st_size
    return {
        "milliseconds": round(1e3 * statistics.median(times), 2),
        "memory_bytes": int(grown.stdout),
        "memory_limit_bytes": int(2.5 * size + 20e6),
    }


def scoring(path: Path, model: LanguageModel, count: int) -> dict[str, Any]:
    """Score a text in chunks: native beside torch's evaluation, on one thread each."""
    words = text(2, count).astype(np.uint32)
    engine = NativeEngine(path)
    times: dict[str, list[float]] = {"native": [], "torch": []}
    for _ in range(3):
        begin = time.perf_counter()
        engine.score(words, threads=THREADS)
        times["native"].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        evaluate(model, words)
        times["torch"].append(time.perf_counter() - begin)
    return {
        "tokens": count,
        "tokens_per_second": {
            name: round(count / statistics.median(t)) for name, t in times.items()
        },
        "native, times faster than torch's evaluation": ratio(times["torch"], times["native"]),
    }


def fastest(times: dict[str, list[float]], names: list[str]) -> list[float]:
    """Return the times of the contender with the smallest median."""
    return min((times[name] for name in names if name in times), key=statistics.median)


def ratio(slow: list[float], quick: list[float]) -> float:
    """Return the median of the ratios within the rounds."""
    return round(statistics.median(a / b for a, b in zip(slow, quick, strict=True)), 2)


def show(result: dict[str, Any]) -> None:
    """Print one file's results."""
    print(f"\n{result['bits']} bits, {result['file_bytes']:,} bytes, kernels {result['kernels']}")
    for name, value in result["microseconds"].items():
        print(f"  {name:<38}{value:>12,.1f} µs per token")
    for name, value in result["ratios"].items():
        print(f"  {name}: {value}")
    print(f"  open: {result['open']}")
    print(f"  scoring: {result['scoring']}")


if __name__ == "__main__":
    main()
