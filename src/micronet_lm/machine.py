"""Facts about the machine of this process, and the folder for measurements of it."""

import os
import platform
import signal
from contextlib import suppress
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def processor_name() -> str:
    """Return the processor's name from the system, such as `Intel(R) Xeon(R) Processor`."""
    fields = _cpuinfo()
    return fields.get("model name") or platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def processor_identity() -> str:
    """Return one line that differs between processors whose kernels may behave differently.

    Virtual machines often share a name while their hypervisors hide different instructions, so
    family, model, stepping and all flags are part of it.
    """
    fields = _cpuinfo()
    keys = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features")
    known = [fields[key] for key in keys if key in fields]
    return " ".join([platform.machine(), processor_name(), *known])


@lru_cache(maxsize=1)
def instruction_sets() -> tuple[str, ...]:
    """Return the processor's flags as the system names them; empty if unknown."""
    fields = _cpuinfo()
    return tuple((fields.get("flags") or fields.get("Features") or "").split())


def core_count() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def busyness() -> float:
    """Return how many processes share a core now, at least 1: what waits needs so many times."""
    try:
        return max(1.0, os.getloadavg()[0] / core_count())
    except OSError:  # not known here
        return 1.0


def let_waiting_threads_sleep() -> None:
    """Make torch's threads sleep soon when they wait for each other, unless the user chose.

    By default GNU's OpenMP lets them spin for milliseconds. If other programs need the cores too, a
    thread then spins for as long as the one that it waits for has no core (docs/machines.md).
    Torch reads the setting when it is imported, so this comes first.
    """
    if not any(name in os.environ for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")):
        os.environ["GOMP_SPINCOUNT"] = "1000"  # its own choice for more threads than cores


def leads() -> bool:
    """Return whether this process talks to the user: the first of those that torchrun started."""
    return os.environ.get("RANK", "0") == "0"


def memory_bytes() -> tuple[int | None, int | None]:
    """Return the machine's total and free memory in bytes, each None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None, None
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if ":" in line}
    return sizes.get("MemTotal"), sizes.get("MemAvailable")


def signal_name(number: int) -> str:
    """Return a signal's name, such as `SIGKILL`, or `signal 37` for one without a name.

    Of the real-time signals only the first and the last have names.
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def cache_folder() -> Path:
    """Return the folder for measurements of this machine; it may not exist yet.

    The folder above it is made: a new home may lack `.cache`.
    """
    home = os.environ.get("XDG_CACHE_HOME")
    above = Path(home) if home else Path.home() / ".cache"
    with suppress(OSError):  # whoever writes there says what is wrong
        above.mkdir(parents=True, exist_ok=True)
    return above / "micronet-lm"


def _cpuinfo() -> dict[str, str]:
    """Return the fields of the first processor in /proc/cpuinfo; empty if there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    first = text.strip().split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}
