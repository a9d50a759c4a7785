"""Speed of a packed model on this machine."""

from pathlib import Path

from micronet_lm.machine import processor_name
from micronet_lm.report.document import Numbers, Section, Text
from micronet_lm.runtime.benchmark import measure_engine
from micronet_lm.runtime.engines import open_engine

SECONDS = 0.4
"""Time of each measurement."""


def speed_section(packed: Path) -> Section:
    """Measure a packed file with the engine that would run it, on one thread."""
    engine = open_engine(packed)
    found = measure_engine(engine, SECONDS)
    kernels = getattr(engine, "kernels", None)
    with_what = f"the engine {engine.name}" + (f" ({kernels})" if kernels else "")
    full = "with context and cache full" if found["cache_full"] else "with a cache not yet full"
    return Section(
        title="Speed",
        blocks=[
            Numbers(
                entries=[
                    ("words read per second", f"{found['tokens_per_second']['scoring']:,.0f}"),
                    (
                        "per suggestion of the 5 likeliest words",
                        f"{found['microseconds_per_token']['top_5'] / 1e3:,.2g} ms",
                    ),
                ]
            ),
            Text(
                text=f"Measured for {SECONDS:g} seconds each when this page was written, with "
                f"{with_what} on one thread of {processor_name()}, {full}; other work on the "
                "machine makes it slower. 'micronet bench' measures for longer."
            ),
        ],
    )
