"""Describe this installation and what works on this machine, for `micronet doctor`."""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import micronet_lm
from micronet_lm.errors import MicronetError, install_extra
from micronet_lm.machine import (
    busyness,
    cache_folder,
    core_count,
    instruction_sets,
    memory_bytes,
    processor_name,
    signal_name,
)
from micronet_lm.runtime.engines import has_native, open_engine
from micronet_lm.runtime.native import kernel_sets
from micronet_lm.runtime.places import shipped_model
from micronet_lm.runtime.self_test import check_kernels

PACKAGE = "micronet-lm"

TOLD = re.compile(r"^(ssse3|sse4|avx|fma|f16c|amx|bmi2|asimd|neon|sve|i8mm|bf16)")
"""Instruction sets that matter to torch or to the engine, as the system names them."""

TORCH_SECONDS = 90.0
"""Longest time for torch to start and be measured on a machine that does nothing else."""


def diagnose(*, again: bool = False) -> dict[str, Any]:
    """Return all facts; `again` repeats earlier measurements.

    The key `problems` lists what is broken, one sentence each; it is empty if all works.
    """
    problems: list[str] = []
    return {
        "version": micronet_lm.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()}, {_c_library()}",
        "processor": _processor(),
        "engine": _engine(problems),
        "torch": _torch(problems, again=again),
        "extras": _extras(problems),
        "places": {
            "package": str(Path(micronet_lm.__file__).parent),
            "measurements": str(cache_folder()),
            "demo model": str(shipped_model()),
            "corpora, runs, labels": f"where the command line says, relative to {Path.cwd()}",
        },
        "problems": problems,
    }


def _processor() -> dict[str, Any]:
    total, free = memory_bytes()
    return {
        "name": processor_name(),
        "architecture": platform.machine(),
        "cores": core_count(),
        "instructions": [name for name in instruction_sets() if TOLD.match(name)],
        "memory_bytes": total,
        "free_memory_bytes": free,
        "large_pages": _large_pages(),
    }


def _engine(problems: list[str]) -> dict[str, Any]:
    """Return the engine for packed models, its kernel sets, and whether each is correct."""
    told: dict[str, Any] = {
        "name": "native" if has_native() else "numpy",
        "MICRONET_KERNELS": os.environ.get("MICRONET_KERNELS"),
        "kernels": [],
    }
    try:
        checks = {check.name: asdict(check) for check in check_kernels()}
        told["kernels"] = [
            {**asdict(kernels), "check": checks.get(kernels.name)} for kernels in kernel_sets()
        ]
        problems += [
            f"the engine's {name} kernels are broken: {check['detail']}"
            for name, check in checks.items()
            if not check["ok"]
        ]
        session = open_engine(shipped_model()).start()
        session.feed(0)
        session.top_k(1)
    except (MicronetError, ImportError, OSError) as error:
        problems.append(f"the {told['name']} engine cannot run the demo model: {error}")
    return told


def _torch(problems: list[str], *, again: bool) -> dict[str, Any] | None:
    """Return facts about torch on this machine; None if it is not installed."""
    if find_spec("torch") is None:
        return None
    words = [sys.executable, "-m", "micronet_lm.training.precision.torch_report"]
    limit = TORCH_SECONDS * busyness()
    try:
        done = subprocess.run(  # noqa: S603
            [*words, *(["again"] if again else [])],
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        problems.append(f"torch gave no answer within {limit:.0f} s{_busy()}")
        return {"broken": problems[-1]}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        why = signal_name(-done.returncode) if done.returncode < 0 else last
        problems.append(f"torch does not work here: {why}")
        return {"broken": problems[-1]}
    told: dict[str, Any] = json.loads(done.stdout)
    if told["broken"]:
        problems.append(f"torch cannot train here: {told['broken']}")
    return told


def _busy() -> str:
    """Return a remark on a machine that is too busy for time limits; nothing on a calm one."""
    wait = busyness()
    if wait < 2:
        return ""
    return f", but {wait:.0f} processes share each core now: ask again when fewer do"


def _extras(problems: list[str]) -> dict[str, dict[str, str | None]]:
    """Return the packages of every extra with their versions; None for a missing one."""
    try:
        requirements = metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        problems.append(f"{PACKAGE} is imported but not installed: pip install .")
        return {}
    extras: dict[str, dict[str, str | None]] = {}
    for requirement in requirements:
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        extra = re.search(r"extra == ['\"]([^'\"]+)['\"]", requirement)
        if name != PACKAGE and _is_for_this_python(requirement):
            extras.setdefault(extra[1] if extra else "base", {})[name] = _version(name)
    missing = [name for name, version in extras.get("base", {}).items() if version is None]
    problems += [f"{name} is missing: pip install {name}" for name in missing]
    return extras


def _is_for_this_python(requirement: str) -> bool:
    least = re.search(r"python_version >= ['\"](\d+)\.(\d+)['\"]", requirement)
    return least is None or sys.version_info >= (int(least[1]), int(least[2]))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _large_pages() -> str | None:
    """Return the system's setting for large pages; None if unknown."""
    try:
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="utf-8")
    except OSError:
        return None
    chosen = re.search(r"\[(\w+)\]", text)
    return chosen[1] if chosen else None


def _c_library() -> str:
    name, version = platform.libc_ver()
    return f"{name} {version}".strip() or "C library unknown"


def described(found: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield a diagnosis as lines: a name and a text each."""
    yield "micronet-lm", found["version"]
    yield "Python", found["python"]
    yield "system", found["system"]
    processor = found["processor"]
    yield "processor", f"{processor['name']}, {processor['architecture']}"
    yield "instructions", " ".join(processor["instructions"]) or "unknown"
    memory = [processor["memory_bytes"], processor["free_memory_bytes"]]
    sizes = ["unknown" if size is None else f"{size / 2**30:.1f} GiB" for size in memory]
    yield "cores, memory", f"{processor['cores']}, {sizes[0]} ({sizes[1]} free)"
    yield "large pages", processor["large_pages"] or "unknown"
    yield from _described_engine(found["engine"])
    yield from _described_torch(found["torch"])
    for extra, packages in found["extras"].items():
        there = [f"{name} {version}" for name, version in packages.items() if version]
        missing = [name for name, version in packages.items() if not version]
        lacks = f"missing: {', '.join(missing)}" if missing else ""
        name = "packages" if extra == "base" else f"extra {extra}"
        yield name, "; ".join(part for part in (", ".join(there), lacks) if part)
    for name, place in found["places"].items():
        yield name, place


def _described_engine(engine: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if engine["name"] == "numpy":
        yield "engine", "NumPy (slow: the native engine is not built; install with a C++ compiler)"
        return
    forced = engine["MICRONET_KERNELS"]
    yield "engine", f"native{f', MICRONET_KERNELS={forced}' if forced else ''}"
    for kernels in engine["kernels"]:
        check = kernels["check"]
        if not kernels["built"]:
            text = "not in this build"
        elif not kernels["runs"]:
            text = "not on this processor"
        elif check is None:
            text = "not tried"
        else:
            text = ("right: " if check["ok"] else "BROKEN: ") + check["detail"]
        yield f"  {kernels['name']}", f"{text}{' (taken)' if kernels['chosen'] else ''}"


def _described_torch(torch: Mapping[str, Any] | None) -> Iterable[tuple[str, str]]:
    if torch is None:
        yield "torch", f"not installed; training needs it: {install_extra('train')}"
        return
    if "version" not in torch:
        yield "torch", f"BROKEN: {torch['broken']}"
        return
    parts = [f"{torch['version']}, {torch['threads']} threads", torch["instructions"]]
    parts += [f"{name}={value}" for name, value in torch["settings"].items()]
    parts += [f"{torch['gpus']} GPUs"] if torch["gpus"] else []
    yield "torch", ", ".join(parts)
    held = torch["onednn_max_cpu_isa"]
    setting = f" with ONEDNN_MAX_CPU_ISA={held}" if held else ""
    yield "training in", f"{torch['precision']}{setting} (train.precision auto)"
    for trial in torch["trials"]:
        yield "  tried", trial["says"]
    yield "  kept in", torch["kept_in"]
