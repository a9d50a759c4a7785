"""The environment of a report: versions and the processor; no hosts, users or folders."""

import platform
from importlib import metadata

from micronet_lm.machine import core_count, processor_name

PACKAGES = ("micronet-lm", "torch", "numpy", "safetensors", "pydantic")


def environment() -> list[tuple[str, str]]:
    """Return versions and hardware."""
    found = [("Python", platform.python_version()), ("system", platform.system())]
    for package in PACKAGES:
        try:
            found.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            continue
    return [*found, ("processor", processor_name()), ("cores", str(core_count()))]
