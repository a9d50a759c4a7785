"""Check the native engine's kernels on this machine: correct numbers, and no crash by a signal.

A processor may report instructions that it cannot run, for example in a virtual machine. So each
kernel set is tested in a child process, `python -m micronet_lm.runtime.self_test NAME`, which
prints its verdict as JSON; `check_kernels` starts these processes and reports how each ended.

The tests use small random models that together reach every kernel, and the demo model. Each set is
compared with the scalar kernels, and those with the NumPy engine: bit by bit where
docs/arithmetic.md fixes the result, otherwise within `TOLERANCE`.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES, TEXT_PLACES, ModelConfig, Place
from micronet_lm.errors import MicronetError
from micronet_lm.machine import busyness, signal_name
from micronet_lm.runtime.engine import Engine, Floats, Session
from micronet_lm.runtime.engines import has_native
from micronet_lm.runtime.native import NativeEngine, NativeSession, kernel_sets
from micronet_lm.runtime.places import shipped_model
from micronet_lm.runtime.reference import NumpyEngine

TOLERANCE = 1e-5
"""Largest difference of log-probabilities: after the last quantizer fp32 sums may be in any order,
which changes a few last bits of numbers around 10; the parity tests use the same limit."""

TOKENS = 30
"""Length of the text that every model reads; longer than a short context and a small cache."""

SECONDS = 60.0
"""Longest time of one kernel set, which needs about 1 s; a longer one counts as a hang."""


@dataclass(frozen=True, kw_only=True)
class KernelCheck:
    """Result for one kernel set."""

    name: str
    ok: bool
    detail: str
    """A sentence that says what was compared, or what failed."""
    seconds: float
    """Time of the child process, its start included."""


def check_kernels(timeout: float | None = None) -> list[KernelCheck]:
    """Check each kernel set that this processor runs, in one child process each.

    `timeout` is the longest time of one set, in seconds; by default it is longer on a busy machine.
    Without the native engine the result is empty.
    """
    if not has_native():
        return []
    limit = SECONDS * busyness() if timeout is None else timeout
    return [_check(kernels.name, limit) for kernels in kernel_sets() if kernels.runs]


def child_command(name: str) -> list[str]:
    """Return the command that checks one kernel set and prints its verdict."""
    return [sys.executable, "-m", "micronet_lm.runtime.self_test", name]


def _check(name: str, timeout: float) -> KernelCheck:
    begin = time.monotonic()
    ok, detail = _ask_child(name, timeout)
    return KernelCheck(name=name, ok=ok, detail=detail, seconds=time.monotonic() - begin)


def _ask_child(name: str, timeout: float) -> tuple[bool, str]:
    """Run the child process and turn any outcome into a verdict."""
    try:
        done = subprocess.run(  # noqa: S603
            child_command(name), capture_output=True, text=True, check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return False, f"the {name} kernels gave no answer within {timeout:g} s"
    except OSError as error:
        return False, f"the process to check the {name} kernels did not start: {error}"
    if done.returncode < 0:
        return False, f"the {name} kernels were ended by {signal_name(-done.returncode)}"
    try:
        verdict = json.loads(done.stdout)
        return bool(verdict["ok"]), str(verdict["detail"])
    except (ValueError, TypeError, KeyError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return False, f"the check of the {name} kernels gave no verdict: {last}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A child process's result for its kernel set."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Distance of an answer from the one it is compared with."""

    question: str
    off: float
    allowed: float
    """Largest distance allowed; 0 requires the same bits."""

    @property
    def fits(self) -> bool:
        """Whether the answers agree; NaN never does."""
        return self.off <= self.allowed


def judge(name: str) -> Verdict:
    """Test one kernel set in this process; stop at the first wrong answer."""
    largest, models = 0.0, 0
    try:
        with TemporaryDirectory(prefix="micronet-self-test-") as folder:
            for model, path, exact in _models(Path(folder)):
                engine = NativeEngine(path, kernels=name)
                other = NativeEngine(path, kernels="scalar") if name != "scalar" else None
                reference = other or NumpyEngine(path)
                for difference in differences(engine, reference, exact=exact):
                    if not difference.fits:
                        return Verdict(name=name, ok=False, detail=_wrong(name, model, difference))
                    largest = max(largest, difference.off)
                models += 1
    except MicronetError as error:
        return Verdict(name=name, ok=False, detail=f"the {name} kernels gave an error: {error}")
    against = "the NumPy engine's" if name == "scalar" else "those of the scalar kernels"
    detail = f"all answers for {models} models are {against}, to {largest:.1g}"
    return Verdict(name=name, ok=True, detail=detail)


def _wrong(name: str, model: str, difference: Difference) -> str:
    allowed = f"{difference.allowed:g} is allowed" if difference.allowed else "must be the same"
    return (
        f"the {name} kernels give a wrong number: {difference.question} of {model} is "
        f"{difference.off:.2g} off ({allowed})"
    )


def differences(
    engine: NativeEngine, reference: Engine, *, exact: bool = False
) -> Iterator[Difference]:
    """Compare the answers of two engines with the same model.

    `exact` says that the model's activations are quantized: then a session's keys, values and
    hidden states must be equal to the last bit.
    """
    ids = np.random.default_rng(5).integers(0, engine.vocabulary_size, TOKENS)
    scores = engine.score(ids)
    yield _difference("score", scores, reference.score(ids), TOLERANCE)
    yield _difference("score by two threads", engine.score(ids, threads=2), scores)

    session, stepping, other = engine.start(), engine.start(), reference.start()
    session.feed_many(ids)
    other.feed_many(ids)
    for token in ids:
        stepping.feed(int(token))
    whole = session.log_distribution()
    yield _difference("log_distribution", whole, other.log_distribution(), TOLERANCE)
    yield _difference("log_distribution after single feeds", stepping.log_distribution(), whole)
    kept = session.save()
    yield _same("the state after single feeds", stepping.save(), kept)
    if exact and isinstance(other, NativeSession):
        yield _same("the state of a session", kept, other.save())

    best, values = session.top_k(7)
    order = np.argsort(-whole, kind="stable")[:7]
    yield _same("the order of top_k", best.astype(np.int64).tobytes(), order.tobytes())
    yield _difference("top_k", values, whole[order])
    yield _difference("top_k", values, other.top_k(7)[1], TOLERANCE)
    one = np.array([session.log_probability(int(token)) for token in order], np.float32)
    yield _difference("log_probability", one, whole[order])
    yield _same("sample", *(_sampled(s, whole, int(order[0])) for s in (session, other)))


def _sampled(session: Session, log_distribution: Floats, word: int) -> bytes:
    """Sample at the middle of one word's interval, so that last bits do not matter."""
    temperature = 0.7
    weights = np.exp(log_distribution.astype(np.float64) / temperature)
    u = (weights[:word].sum() + weights[word] / 2) / weights.sum()
    return session.sample(float(u), temperature).to_bytes(4, "little")


def _difference(question: str, got: Floats, wanted: Floats, allowed: float = 0.0) -> Difference:
    off = np.abs(got.astype(np.float64) - wanted.astype(np.float64)).max()
    return Difference(question=question, off=float(off), allowed=allowed)


def _same(question: str, got: bytes, wanted: bytes) -> Difference:
    """Compare bytes; the difference is the share of bytes that differ."""
    if len(got) != len(wanted):
        return Difference(question=question, off=1.0, allowed=0.0)
    unlike = np.frombuffer(got, np.uint8) != np.frombuffer(wanted, np.uint8)
    return Difference(question=question, off=float(unlike.mean()), allowed=0.0)


_THREE_BINS = ModelConfig(
    vocabulary=200,
    cutoffs=(40, 120),
    embedding_widths=(32, 16, 4),
    width=32,
    layers=1,
    heads=5,  # a group of four, and one
    key_width=7,
    value_width=5,
    ffn_width=50,
    context=9,
)
_ONE_BIN = ModelConfig(
    vocabulary=90,
    embedding_widths=(21,),
    width=21,
    layers=1,
    heads=2,
    key_width=8,
    value_width=24,
    ffn_width=33,
    context=80,  # longer than the text
)
_WIDE = ModelConfig(
    vocabulary=20,
    embedding_widths=(8,),
    width=8,
    layers=1,
    heads=1,
    key_width=4,
    value_width=4,
    ffn_width=4200,  # too many columns for a float state as two integers
    context=9,
)


def _choices() -> Iterator[tuple[str, ModelConfig, Choice]]:
    """Yield random models that together reach every kernel, as gcov has shown."""
    places = {"no": (), "some": TEXT_PLACES, "all": frozenset(Place)}
    for bits in (4, 8, 9, 16):
        for quantized, own in places.items():
            shape = _ONE_BIN if quantized == "some" else _THREE_BINS
            choice = Choice(
                seed=bits,
                cache=20,
                sparsity=0.4 if bits != 8 else 0.0,
                bits=bits,
                position_bits=bits if quantized == "all" else 32,
                scale_per_row=quantized == "no",
                places=own,
            )
            yield f"{bits} bits with {quantized} activations quantized", shape, choice
    yield "fp32", _THREE_BINS, Choice(seed=1, cache=20)
    yield "fp32 without a cache", _ONE_BIN, Choice(seed=2)
    mixed = Choice(seed=3, cache=20, places=CODE_PLACES, activation_bits=9)
    yield "fp32 with 9-bit activations", _THREE_BINS, mixed
    for bits in (8, 9):
        yield f"{bits} bits with wide rows", _WIDE, Choice(seed=bits, bits=bits)


def _models(folder: Path) -> Iterator[tuple[str, Path, bool]]:
    """Yield each model's name and file, and whether its activations are quantized."""
    path = folder / "model.safetensors"
    for name, shape, choice in _choices():
        write_packed(path, random_model(shape, choice))
        yield f"a random model ({name})", path, bool(choice.places)
    yield "the demo model", shipped_model(), True


def main(words: list[str]) -> int:
    """Test the named kernel set and print the verdict."""
    if len(words) != 1:
        print("usage: python -m micronet_lm.runtime.self_test KERNELS", file=sys.stderr)  # noqa: T201
        return 2
    verdict = judge(words[0])
    print(json.dumps(asdict(verdict)))  # noqa: T201
    return 0 if verdict.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
