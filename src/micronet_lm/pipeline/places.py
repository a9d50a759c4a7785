"""How long the stages of a plan would take elsewhere, from stated assumptions.

Nothing here has run on a GPU. A stage takes its operations at the speed of the place; a training
also exchanges its gradients after each step, and launches operations one after the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from micronet_lm.pipeline.resources import COMPUTING, SHARED

GRADIENT_BYTES = 4
"""Bytes of a gradient's number that is exchanged."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A kind of machine."""

    name: str
    speed: float
    """Operations per second and device that a model reaches: far below a device's peak."""
    devices: int = 1
    """Processes that share a stage, one per device."""
    link: float = 0.0
    """Bytes per second between devices; not needed for one."""
    launch: float = 0.0
    """Seconds per operation that a step launches on a device."""


LAUNCHES = 3_000
"""Operations that torch calls in a training step: 1,704 were counted for the paper's student with a
cache, 2,888 for its teacher, both without a GPU (docs/cluster.md)."""

PLACES = (
    Place(name="1 core", speed=25e9),
    Place(name="1 GPU", speed=15e12, launch=5e-6),
    Place(name="8 GPUs", speed=15e12, devices=8, link=50e9, launch=5e-6),
)
"""Where a plan's stages could run."""


def assumptions() -> str:
    """Return in one sentence what the estimates assume."""
    core, gpu, several = PLACES
    return (
        f"Assumed, not measured: a core does {core.speed / 1e9:g} billion operations per second; "
        f"a GPU does {gpu.speed / 1e12:g} trillion, and begins {LAUNCHES:,} operations per "
        f"training step at {gpu.launch * 1e6:g} microseconds each; {several.devices} GPUs exchange "
        f"gradients at {several.link / 1e9:g} GB per second; training costs 3 times the operations "
        "of reading. Of 8 GPUs a training uses as many as divide its batch evenly."
    )


def seconds_at(place: Place, row: Mapping[str, Any]) -> float | None:
    """Return the time of an estimated stage at a place; None if there is no estimate."""
    name, operations = row["stage"], row.get("operations")
    if name not in COMPUTING or operations is None:
        seconds: float | None = row["seconds"]
        return seconds  # the work of one process on a processor, which a GPU does not help
    devices = sharing(row, place.devices)
    computing: float = operations / (place.speed * devices)
    steps: int = row.get("steps") or 0
    computing = max(computing, steps * LAUNCHES * place.launch)
    return computing + steps * exchange_seconds(row["parameters"], devices, place.link)


def sharing(row: Mapping[str, Any], most: int) -> int:
    """Return how many of `most` processes can share a stage; a training's divide its batch."""
    if row["stage"] not in SHARED:
        return 1
    rows: int | None = row.get("rows")
    if rows is None:
        return most
    return max(count for count in range(1, most + 1) if rows % count == 0)


def exchange_seconds(parameters: int, devices: int, link: float) -> float:
    """Return the time of averaging all gradients in a ring."""
    return exchanged_bytes(parameters, devices) / link if devices > 1 else 0.0


def exchanged_bytes(parameters: int, devices: int) -> float:
    """Return the bytes that each device sends to average all gradients in a ring."""
    return 2 * (devices - 1) / devices * GRADIENT_BYTES * parameters
