"""Run the fuzz targets in turn and keep count: executions, coverage and time of every run add up.

    python tests/fuzzing/campaign.py [--seconds 600] [--targets json,tokenizers] [--record FILE]

What a fuzzer learned is kept in the folder `--corpus`, the counts in `--record`: the next run goes
on from there. A target that finds something ends the run with exit code 1 and names the input.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NATIVE = {
    # the longest input, and the share of the time: quick targets have most of it
    "utf8": (32, 4),
    "json": (128, 4),
    "metadata": (2048, 3),
    "codes": (400, 2),
    "tokenizers": (64, 2),
    "text": (96, 2),
    "memories": (256, 2),
    "restore": (256, 2),
    "open": (8192, 2),
}
PYTHON = {
    "recipe": (2048, 1),
    "packed": (8192, 1),
    "both": (8192, 1),
    "tokens": (128, 1),
    "checkpoint": (8192, 1),
    "personal": (512, 1),
}
# Stacks of allocations and a long quarantine would take half of the time; who looks at a crash runs
# its input again without this.
SANITIZERS = "malloc_context_size=1:quarantine_size_mb=16:thread_local_quarantine_size_kb=64"


@dataclass(frozen=True)
class Run:
    """What one run of a target told."""

    executions: int
    seconds: float
    edges: int
    features: int
    inputs: int
    """How many inputs the fuzzer keeps since each reaches something new."""


def command(target: str, corpus: Path, binaries: Path, seconds: int) -> list[str]:
    """Return the command that runs a target for some time."""
    kept = corpus / (target if target in NATIVE else f"python-{target}")
    kept.mkdir(parents=True, exist_ok=True)
    common = [
        f"-max_total_time={seconds}",
        "-timeout=60",
        "-print_final_stats=1",
        "-reload=0",
        "-entropic=0",
    ]
    if target in PYTHON:
        program = str(ROOT / "tests" / "fuzzing" / "readers.py")
        longest = f"-max_len={PYTHON[target][0]}"
        return [sys.executable, program, target, str(kept), longest, *common]
    seeds = ROOT / "native" / "fuzz" / "corpus" / target
    options = [f"-max_len={NATIVE[target][0]}", f"-artifact_prefix={corpus}/{target}-", *common]
    if target in ("json", "metadata"):
        options.append(f"-dict={ROOT / 'native' / 'fuzz' / 'json.dict'}")
    return [str(binaries / f"fuzz_{target}"), *options, str(kept), str(seeds)]


def read_output(text: str) -> Run | None:
    """Read libFuzzer's lines; None where it did not come to its end."""
    done = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    states = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", text)
    if not done or not states:
        return None
    edges, features, inputs = map(int, states[-1])
    return Run(int(done[1]), 0.0, edges, features, inputs)


def added(record: dict[str, Any], target: str, run: Run) -> dict[str, Any]:
    """Return the record with a run added."""
    before = record.get(target, {})
    return {
        **record,
        target: {
            "executions": before.get("executions", 0) + run.executions,
            "seconds": round(before.get("seconds", 0) + run.seconds, 1),
            "edges": max(before.get("edges", 0), run.edges),
            "features": max(before.get("features", 0), run.features),
            "inputs": run.inputs,
        },
    }


def report(record: dict[str, Any]) -> str:
    """Return the counts as a table."""
    lines = ["| target | executions | per second | edges | features |", "|---|---|---|---|---|"]
    for name, row in record.items():
        rate = row["executions"] / max(row["seconds"], 1)
        numbers = (row["executions"], round(rate), row["edges"], row["features"])
        lines.append(f"| `{name}` | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    total = sum(row["executions"] for row in record.values())
    return "\n".join([*lines, f"| all | {total:,} | | | |"])


def run_target(words: list[str], log: Path) -> tuple[int, str, float]:
    """Run a fuzzer; an interruption is passed on to it, so that it still tells its counts."""
    environment = {**os.environ, "ASAN_OPTIONS": SANITIZERS, "OMP_NUM_THREADS": "1"}
    begin = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, env=environment)
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait(60)
            code = -signal.SIGINT
    return code, log.read_text(errors="replace"), time.monotonic() - begin


def main() -> None:
    """Read the command line and run the targets in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--slice", type=int, help="seconds of one turn of a target of share 1")
    parser.add_argument("--targets", default=",".join([*NATIVE, *PYTHON]))
    parser.add_argument("--corpus", type=Path, default=ROOT / "build" / "fuzz-corpus")
    parser.add_argument("--binaries", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--record", type=Path, help="JSON; by default record.json in the corpus")
    arguments = parser.parse_args()
    targets = arguments.targets.split(",")
    unknown = set(targets) - {*NATIVE, *PYTHON}
    if unknown:
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    for interruption in (
        signal.SIGTERM,
        signal.SIGINT,
    ):  # a shell's background job ignores the latter
        signal.signal(interruption, signal.default_int_handler)
    arguments.corpus.mkdir(parents=True, exist_ok=True)
    path = arguments.record or arguments.corpus / "record.json"
    left = dict.fromkeys(targets, arguments.seconds)
    while any(left.values()):
        for target in targets:
            _, share = NATIVE.get(target) or PYTHON[target]
            seconds = min(left[target], share * arguments.slice if arguments.slice else 10**9)
            if not seconds:
                continue
            left[target] -= seconds
            words = command(target, arguments.corpus, arguments.binaries, seconds)
            log = arguments.corpus / f"{target}.log"
            code, text, spent = run_target(words, log)
            run = read_output(text)
            if run is not None:
                record = json.loads(path.read_text()) if path.exists() else {}
                run = Run(run.executions, spent, run.edges, run.features, run.inputs)
                new = path.with_suffix(".new")
                new.write_text(json.dumps(added(record, target, run), indent=1) + "\n")
                new.replace(path)
                _tell(f"{target}: {run.executions:,} in {spent:.0f} s, {run.edges} edges")
            if code == -signal.SIGINT:
                sys.exit(130)
            if code or run is None:
                _tell("\n".join(text.splitlines()[-60:]))
                sys.exit(f"{target} found something, or did not run; {log} has all of it")
    _tell(report(json.loads(path.read_text())))


def _tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
