"""The environment of a report: date, versions, processor; no names of hosts, users or folders."""

import platform
from datetime import UTC, datetime
from importlib import metadata

from micronet_lm import __version__
from micronet_lm.machine import core_count, processor_name

PACKAGES = ("torch", "numpy", "safetensors", "pydantic", "matplotlib")


def today() -> str:
    """Return the date of now, the same in all time zones."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def environment() -> list[tuple[str, str]]:
    """Name the date, versions and hardware."""
    found = [("date", today()), ("micronet-lm", __version__), ("Python", platform.python_version())]
    for package in PACKAGES:
        try:
            found.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            continue
    return [
        *found,
        ("system", platform.system()),
        ("processor", processor_name()),
        ("cores", str(core_count())),
    ]


def made_line(command: str) -> str:
    """Return one line with the date, the version and the command of a report."""
    return f"{today()}, micronet-lm {__version__}: {command}"
