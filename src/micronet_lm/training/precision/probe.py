"""Measure in child processes whether bfloat16 products work here and are faster.

`python -m micronet_lm.training.precision.probe THREADS SECONDS SETTING…` imports torch once and
forks one process per setting of oneDNN's `ONEDNN_MAX_CPU_ISA` (`as-is` leaves it alone): a setting
is read at torch's first product, so each needs a process that has done none. Every fork trains a
small model, first in fp32, then in bfloat16, and reports each at once: a crash in bfloat16 does not
lose the result of fp32. The output is one JSON list of `Trial`s.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import torch

from micronet_lm.config import ModelConfig
from micronet_lm.machine import signal_name
from micronet_lm.model import LanguageModel
from micronet_lm.training.precision.verdict import AS_IS, HUNG, ISA_VARIABLE

SHAPE = ModelConfig(
    vocabulary=4000,
    cutoffs=(2000,),
    embedding_widths=(256, 64),
    width=256,
    layers=1,
    heads=8,
    key_width=24,
    value_width=24,
    ffn_width=768,
    context=97,
)
"""One layer of the paper's student with fewer words: products of the same sizes, but fewer."""

WINDOW = 576
"""Tokens per step: the shortest of the paper's training windows."""

ROUNDS = 4
"""Largest number of timed steps per format, alternating; the fastest counts."""

ALIVE = 0.0
"""Reported instead of seconds when a format works but was not measured yet."""

SPENT = 0.8
"""Seconds after which a trial ends with its results so far."""


def main() -> None:
    """Try the settings named on the command line."""
    threads, seconds = int(sys.argv[1]), float(sys.argv[2])
    torch.set_num_threads(threads)
    json.dump([try_setting(setting, seconds) for setting in sys.argv[3:]], sys.stdout)


def try_setting(setting: str, seconds: float) -> dict[str, Any]:
    """Measure one setting in a fork; return its report and how it ended."""
    isa = None if setting == AS_IS else setting
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        if isa is not None:
            os.environ[ISA_VARIABLE] = isa
        _report(writer)
    os.close(writer)
    text, late = _read(reader, seconds)
    os.close(reader)
    if late:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found: dict[str, Any] = {"isa": isa, "float32": None, "bfloat16": None}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        found[name] = float(value)
    slow = late and found["bfloat16"] == ALIVE
    if slow:  # it works, but is too slow to measure
        found["bfloat16"] = seconds
    return {**found, "ended": None if slow else _ending(status, late=late, seconds=seconds)}


def _ending(status: int, *, late: bool, seconds: float) -> str | None:
    """Return what ended a trial early, if anything did."""
    if late:
        return f"{HUNG} {seconds:g} s"
    if status < 0:
        return signal_name(-status)
    return f"exit code {status}" if status else None


def _report(writer: int) -> None:
    """Write the fastest step of each format as soon as it is known; never return."""
    code = 1
    try:
        for name, seconds in _measure():
            os.write(writer, f"{name} {seconds}\n".encode())
        code = 0
    finally:
        os._exit(code)  # a fork must not run its parent's exit handlers


def _measure() -> Iterator[tuple[str, float]]:
    """Yield the time per step of fp32, then of bfloat16, then of both again if they are near.

    Before bfloat16's first step it yields that a small product has worked: where bfloat16 is
    emulated on a busy machine, a step may take longer than the trial without being a hang.
    """
    step = _training_step()
    begin = time.perf_counter()
    times = {}
    for low, name in ((False, "float32"), (True, "bfloat16")):
        if low:
            _small_product()
            yield name, ALIVE
        step(low)  # warm-up: memory, kernels generated on demand
        times[name] = step(low)
        yield name, times[name]
    for _ in range(ROUNDS - 1):
        if time.perf_counter() - begin > SPENT or times["bfloat16"] > 1.5 * times["float32"]:
            break
        for low, name in ((False, "float32"), (True, "bfloat16")):
            times[name] = min(times[name], step(low))
    yield from times.items()


def _small_product() -> None:
    """Multiply forward and backward in bfloat16, large enough to use its kernels."""
    one, other = (torch.ones(128, 128, requires_grad=True) for _ in range(2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = one @ other
    product.sum().backward()


def _training_step() -> Callable[[bool], float]:
    """Return a function that does one step forward and backward and returns its processor time.

    Processor time does not count while other programs have the cores: the verdict is kept for good,
    so it must not depend on what else runs while it is found.
    """
    torch.manual_seed(0)
    model = LanguageModel(SHAPE).train()
    words = torch.randint(0, SHAPE.bounds[-1], (1, WINDOW + 1))

    def step(low: bool) -> float:
        begin = time.process_time()
        model.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16) if low else nullcontext():
            hidden, _ = model(words[:, :-1])
            loss = -model.log_probability(hidden, words[:, 1:]).mean()
        loss.backward()
        return time.process_time() - begin

    return step


def _read(reader: int, seconds: float) -> tuple[str, bool]:
    """Read a pipe to its end or a timeout; return the text and whether time ran out."""
    text, deadline = b"", time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if select.select([reader], [], [], left)[0]:
            piece = os.read(reader, 4096)
            if not piece:
                return text.decode(), False
            text += piece
    return text.decode(), True


if __name__ == "__main__":
    main()
