"""On what a report was made: versions and the processor, no names of hosts, users or folders."""

import os
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = ("micronet-lm", "torch", "numpy", "safetensors", "pydantic")


def environment() -> list[tuple[str, str]]:
    """Name versions and hardware."""
    found = [("Python", platform.python_version()), ("system", platform.system())]
    for package in PACKAGES:
        try:
            found.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            continue
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [*found, ("processor", _processor()), ("cores", str(cores))]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
