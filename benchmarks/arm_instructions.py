"""Instructions per token on 64-bit ARM, by part: NEON against plain C++, counted by qemu.

    make native-test-arm && python benchmarks/arm_instructions.py

Needs g++-aarch64-linux-gnu and qemu-user. Two runs of different lengths are subtracted, so that
opening the model does not count; a step reads a token and computes the whole distribution.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "build" / "native-arm" / "fingerprint"
QEMU = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
KERNELS = ("neon", "scalar")
PARTS = {
    "products with weights": r"products|stream|tile|exact_|mixed_|narrow",
    "attention": r"scores_|mix_|softmax_f|attention",
    "words: scales, exponentials, sums": (
        r"finish_|exp_|largest|subtract|add_votes|LogSum|exponential|logarithm"
    ),
    "cache": r"Votes|recall|WordIndex|Memory|matching",
    "n-grams": r"NGrams",
    "normalization, quantizers": r"layer_norm|quantize",
}


def counted(kernels: str, tokens: int, model: Path, folder: Path) -> Counter[str]:
    """Run the program; return how many instructions each function took."""
    out = folder / f"{kernels}-{tokens}.txt"
    plugin = f"{folder / 'counts.so'},out={out}"
    command = [*QEMU, "-plugin", plugin, str(PROGRAM), kernels, str(tokens), str(model)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    named = out.read_text(encoding="utf-8").splitlines()
    filtered = ["c++filt", "-p"]
    names = subprocess.run(
        filtered,
        input="\n".join(line.partition(" ")[2] for line in named),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    total: Counter[str] = Counter()
    for line, name in zip(named, names, strict=True):
        if not name.endswith("::show"):  # the program's own hash
            total[name] += int(line.partition(" ")[0])
    return total


def part_of(name: str) -> str:
    """Return the part of the work that a function belongs to."""
    return next((part for part, what in PARTS.items() if re.search(what, name)), "everything else")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    shipped = ROOT / "src" / "micronet_lm" / "models" / "demo.safetensors"
    parser.add_argument("model", nargs="?", type=Path, default=shipped)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--functions", type=int, default=0, help="also show so many functions")
    asked = parser.parse_args()
    missing = [tool for tool in ("qemu-aarch64", "gcc", "c++filt") if not shutil.which(tool)]
    if missing or not PROGRAM.is_file():
        print(f"arm_instructions needs {', '.join(missing) or 'make native-test-arm before it'}")
        return 1
    per_token: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = ROOT / "benchmarks" / "qemu_counts.c"
        build = ["gcc", "-shared", "-fPIC", "-O2", "-o", str(folder / "counts.so"), str(source)]
        subprocess.run(build, check=True)
        for kernels in KERNELS:
            few, many = (counted(kernels, n * asked.tokens, asked.model, folder) for n in (1, 2))
            many.subtract(few)
            per_token[kernels] = Counter({k: n // asked.tokens for k, n in many.items()})
    print(f"| instructions per token | {' | '.join(KERNELS)} | |\n|---|---|---|---|")
    sums = {kernels: Counter[str]() for kernels in KERNELS}
    for kernels, functions in per_token.items():
        for function, count in functions.items():
            sums[kernels][part_of(function)] += count
    for part in [*PARTS, "everything else"]:
        row(part, [sums[kernels][part] for kernels in KERNELS])
    row("all", [sums[kernels].total() for kernels in KERNELS])
    for kernels in KERNELS if asked.functions else ():
        print(f"\n{kernels}:")
        for function, count in per_token[kernels].most_common(asked.functions):
            print(f"{count:12,} {function}")
    return 0


def row(name: str, counts: list[int]) -> None:
    """Print a line of the table."""
    shown = " | ".join(f"{count:,}" for count in counts)
    print(f"| {name} | {shown} | {counts[1] / counts[0] if counts[0] else 0:.1f} × |")


if __name__ == "__main__":
    sys.exit(main())
