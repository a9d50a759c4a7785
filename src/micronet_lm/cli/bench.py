"""`micronet bench`: how fast a packed model runs here."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from micronet_lm.cli import parsers
from micronet_lm.cli.output import make_table, print_report
from micronet_lm.cli.packed import open_model, wanted_model
from micronet_lm.cli.parsers import Arguments, Verbs
from micronet_lm.runtime.benchmark import MOST, TEXT, measure_engine

_EXAMPLE = """examples:
  micronet bench model.safetensors
  micronet bench model.safetensors --engine numpy --seconds 5 --json
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = parsers.add_verb(
        verbs,
        "bench",
        _run,
        help="measure how fast a packed model runs here",
        description=(
            "Measure a packed model: opening it, streaming with the full next-word distribution "
            "after every token, streaming with the 5 likeliest words, and scoring texts of "
            f"{TEXT:,} tokens in chunks, each from its beginning. Streaming is measured with "
            f"context and cache full, or after {MOST:,} tokens where the cache holds more than "
            "that. The text is random, common words more often."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "model",
        nargs="?",
        type=Path,
        metavar="MODEL",
        help="packed file, folder of a run or pipeline, or 'demo'",
    )
    parsers.add_engine(parser)
    parsers.add_threads(parser)
    parsers.add_number(
        parser,
        "--seconds",
        type=parsers.real("(0, inf)"),
        default=2.0,
        metavar="S",
        help="time for each measurement",
    )


def _run(arguments: Arguments) -> int:
    begin = time.perf_counter()
    engine = open_model(arguments.model, arguments.engine).engine
    report: dict[str, Any] = {
        "file": str(wanted_model(arguments.model)),
        "engine": engine.name,
        "kernels": getattr(engine, "kernels", None),
        "threads": arguments.threads,
        "open_seconds": time.perf_counter() - begin,
        **measure_engine(engine, arguments.seconds, arguments.threads),
    }
    return print_report(report, _shown(report), as_json=arguments.json)


def _shown(report: Mapping[str, Any]) -> Iterator[RenderableType]:
    table = make_table("", "tokens/s", "µs/token", title=f"{report['file']}, {report['engine']}")
    for name, speed in report["tokens_per_second"].items():
        table.add_row(name.replace("_", " "), f"{speed:,.0f}", f"{1e6 / speed:,.1f}")
    yield table
    yield f"opened in {report['open_seconds'] * 1e3:.1f} ms"
    if not report["cache_full"]:
        yield f"streaming after {report['tokens_before']:,} tokens: the cache was not full"
