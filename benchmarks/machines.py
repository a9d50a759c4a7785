"""Run the whole test suite with the instruction sets of other processors, and count failures.

Each setting limits the instructions of torch, of its libraries and of the engine, so that one
machine represents several. Every run prints a row; `--out` keeps them as JSON lines.

    python benchmarks/machines.py --times 2 --out machines.jsonl
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from micronet_lm.machine import instruction_sets, processor_name

ROOT = Path(__file__).parents[1]

SETTINGS: dict[str, dict[str, str]] = {
    "as it is, 1 thread": {},
    "SSE4.1, scalar kernels": {
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "MICRONET_KERNELS": "scalar",
    },
    "AVX2": {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "MICRONET_KERNELS": "avx2",
    },
    "2 threads": {"OMP_NUM_THREADS": "2"},
    "2 threads, AVX-512 kernels": {"OMP_NUM_THREADS": "2", "MICRONET_KERNELS": "avx512"},
}
"""Environment variables by the setting's name in the table. MKL's variable changes how fp32
products round, as on another processor."""

COUNTS = ("passed", "failed", "error", "skipped")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--times", type=int, default=1, help="runs of each setting")
    parser.add_argument("--only", metavar="PART", help="settings whose names contain this")
    parser.add_argument("--out", type=Path, help="file of JSON lines to append to")
    parser.add_argument("pytest", nargs="*", help="more words for pytest, after --")
    arguments = parser.parse_args()
    print("| processor | setting | environment | passed | failed | skipped | minutes |")
    print("|---|---|---|---|---|---|---|")
    for _ in range(arguments.times):
        for name in wanted(arguments.only):
            row = {"setting": name, **run(SETTINGS[name], arguments.pytest)}
            if arguments.out:
                with arguments.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            variables = " ".join(f"{key}={value}" for key, value in SETTINGS[name].items())
            print(
                f"| {row['processor']} | {name} | {variables} | {row['passed']} "
                f"| {row['failed'] + row['error']} | {row['skipped']} | {row['minutes']} |",
                flush=True,
            )


def wanted(part: str | None) -> Iterator[str]:
    """Yield the chosen settings that this processor can run."""
    for name, variables in SETTINGS.items():
        kernels = variables.get("MICRONET_KERNELS", "")
        needed = {"avx512": "avx512_vnni", "avx2": "avx2"}.get(kernels)
        contained = name == "2 threads" and "avx512_vnni" in instruction_sets()  # in the next one
        if (part or "") in name and not contained and needed in (None, *instruction_sets()):
            yield name


def run(variables: dict[str, str], more: list[str]) -> dict[str, Any]:
    """Run the suite once; return pytest's counts."""
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *more],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.strip().splitlines() or [""]
    found = {name: int(number) for number, name in re.findall(r"(\d+) ([a-z]+)", lines[-1])}
    failures = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    if done.returncode:
        sys.stderr.write("\n".join(lines[-100:]) + done.stderr + "\n")
    counts = {name: found.get(name, found.get(f"{name}s", 0)) for name in COUNTS}
    return {
        "processor": processor_name(),
        **counts,
        "minutes": round((time.monotonic() - begin) / 60, 1),
        "failures": failures,
        "environment": variables,
    }


if __name__ == "__main__":
    main()
