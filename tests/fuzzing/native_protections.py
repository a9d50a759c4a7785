"""Remove protections of the native engine one by one, and see that a fuzz target notices each.

    make fuzz FUZZ_SECONDS=1 && python tests/fuzzing/native_protections.py [NUMBER ...]

One source is compiled without one of its checks and linked before the fuzzer's library, so that the
changed code runs. The fuzzer begins with the seeds; it must end with a report of a sanitizer or a
broken promise. One that finds nothing is named, and the exit code is 1.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "native" / "src"
BUILT = ROOT / "build" / "fuzz"
RUNS = 200_000


class Removal(NamedTuple):
    """A check, what stands there without it, and the target that must notice."""

    source: str
    check: str
    without: str
    target: str


REMOVALS = [
    Removal("utf8.cpp", "end - p <= more || ", "", "utf8"),
    Removal("utf8.cpp", "if (*p == 0xED) most = 0x9F;", "", "utf8"),
    Removal(
        "json.cpp",
        'i < 4; ++i) {\n    if (at_ >= text_.size) damaged("the text ends within a string");',
        "i < 4; ++i) {",
        "json",
    ),
    Removal(
        "json.cpp",
        'if (depth > kDeepest) damaged("values within values more than 64 deep");',
        "if (depth > kDeepest) __builtin_trap();",
        "json",
    ),
    Removal(
        "coded_words.cpp",
        'if (filled == size) damaged(kName, "more words than it says");',
        "",
        "codes",
    ),
    Removal("coded_words.cpp", "if (end > coded.size) damaged", "if (false) damaged", "codes"),
    Removal("coded_stream.cpp", "if (total != size) damaged", "if (false) damaged", "codes"),
    Removal(
        "prefix_code.cpp",
        "if (filled != kRoom && !is_alone) damaged",
        "if (false) damaged",
        "codes",
    ),
    Removal(
        "personal.cpp",
        'if (body.size - at < size) refuse("ends within its words");',
        "",
        "memories",
    ),
    Removal(
        "personal.cpp",
        "if (id < 0 || id >= model.vocabulary.size() + int32_t(words)) refuse",
        "if (false) refuse",
        "memories",
    ),
]


def compiled(removal: Removal, folder: Path) -> Path:
    """Compile a source without the check; return the fuzzer with it."""
    text = (SOURCES / removal.source).read_text(encoding="utf-8")
    if text.count(removal.check) != 1:
        sys.exit(f"{removal.source} does not have this check once: {removal.check}")
    changed, part, fuzzer = folder / removal.source, folder / "part.o", folder / "fuzzer"
    changed.write_text(text.replace(removal.check, removal.without), encoding="utf-8")
    flags = _flags("micronet")
    subprocess.run([*flags, "-I", SOURCES, "-c", changed, "-o", part], check=True)
    objects = BUILT / "CMakeFiles" / f"fuzz_{removal.target}.dir" / "fuzz"
    link: list[str | Path] = [
        flags[0],
        "-fsanitize=address,undefined,fuzzer",
        objects / f"{removal.target}.cpp.o",
    ]
    libraries = [BUILT / "libsmall_files.a", BUILT / "libmicronet.a"]
    subprocess.run([*link, part, *libraries, "-o", fuzzer], check=True)
    return fuzzer


def _flags(library: str) -> list[str]:
    """Return the compiler and its options, as CMake wrote them down for a library."""
    lines = (BUILT / "CMakeFiles" / f"{library}.dir" / "flags.make").read_text().splitlines()
    values = dict(line.split(" = ", 1) for line in lines if " = " in line)
    words = f"{values.get('CXX_INCLUDES', '')} {values['CXX_FLAGS']}"
    return [_compiler(), *(word for word in shlex.split(words) if word != "-Werror")]


def _compiler() -> str:
    lines = (BUILT / "CMakeCache.txt").read_text().splitlines()
    return next(line.split("=", 1)[1] for line in lines if line.startswith("CMAKE_CXX_COMPILER:"))


def noticed(removal: Removal, folder: Path) -> str | None:
    """Run the fuzzer; return what it reported, None if nothing."""
    kept = folder / "corpus"
    kept.mkdir()
    seeds = ROOT / "native" / "fuzz" / "corpus" / removal.target
    options = [f"-runs={RUNS}", "-seed=1", "-max_len=8192", f"-artifact_prefix={folder}/"]
    if removal.target == "json":
        options.append(f"-dict={ROOT / 'native' / 'fuzz' / 'json.dict'}")
    done = subprocess.run(
        [compiled(removal, folder), *options, kept, seeds],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, "ASAN_OPTIONS": "malloc_context_size=1"},
    )
    if done.returncode == 0:
        return None
    told = [
        line for line in done.stderr.splitlines() if "ERROR: " in line or "runtime error" in line
    ]
    return told[0].split("ERROR: ")[-1] if told else f"exit code {done.returncode}"


def main() -> None:
    """Remove the protections that are named by number, or all."""
    chosen = [int(word) for word in sys.argv[1:]] or range(len(REMOVALS))
    missed = 0
    for number in chosen:
        removal = REMOVALS[number]
        with tempfile.TemporaryDirectory() as folder:
            told = noticed(removal, Path(folder))
        missed += told is None
        check = " ".join(removal.check.split())
        sys.stdout.write(f"{number} {removal.source}: {check}\n  {told or 'NOT NOTICED'}\n")
        sys.stdout.flush()
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
