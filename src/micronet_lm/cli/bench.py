"""`micronet bench`: how fast a packed model runs here."""

import argparse
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from micronet_lm.cli.output import print_json
from micronet_lm.cli.packed import DEFAULT, add_engine, add_threads, check_count, opened
from micronet_lm.cli.parsers import add_parser
from micronet_lm.errors import UsageError

if TYPE_CHECKING:
    from micronet_lm.runtime.engine import Engine

_EXAMPLE = """examples:
  micronet bench model.safetensors
  micronet bench model.safetensors --engine numpy --seconds 5 --json
"""
TEXT = 4096
"""Tokens of the text that is scored, and at least so many are read before streaming is measured."""
MOST = 1 << 16
"""Tokens that are read at most before streaming is measured; a larger cache is not full then."""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "bench",
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
        "model", nargs="?", type=Path, default=DEFAULT, metavar="FILE", help="a packed model"
    )
    add_engine(parser)
    add_threads(parser)
    parser.add_argument(
        "--seconds",
        type=float,
        default=2.0,
        metavar="S",
        help="time for each measurement (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_count("--threads", arguments.threads)
    if not 0 < arguments.seconds < float("inf"):
        raise UsageError(f"--seconds {arguments.seconds} is not a time; give one above 0")
    begin = time.perf_counter()
    lm = opened(arguments.model, arguments.engine)
    opening = time.perf_counter() - begin
    engine = lm.engine
    needed, read = tokens_to_read(json.loads(engine.metadata))
    warm = common_text(engine.vocabulary_size, read)
    session = engine.start()
    session.feed_many(warm)
    ids = warm[:TEXT]

    def distribution(token: int) -> None:
        session.feed(token)
        session.log_distribution()

    def best(token: int) -> None:
        session.feed(token)
        session.top_k(5)

    found = {
        "distribution": _streaming(distribution, ids, arguments.seconds),
        "top_5": _streaming(best, ids, arguments.seconds),
        "scoring": _scoring(engine, ids, arguments.seconds, arguments.threads),
    }
    report: dict[str, Any] = {
        "file": str(arguments.model),
        "engine": engine.name,
        "kernels": getattr(engine, "kernels", None),
        "threads": arguments.threads,
        "open_seconds": opening,
        "tokens_before": read,
        "cache_full": read >= needed,
        "tokens_per_second": found,
        "microseconds_per_token": {name: 1e6 / speed for name, speed in found.items()},
    }
    if arguments.json:
        print_json(report)
        return 0
    table = Table(box=None, header_style="bold", title=f"{arguments.model}, {report['engine']}")
    for column in ("", "tokens/s", "µs/token"):
        table.add_column(column, justify="left" if not column else "right")
    for name, speed in found.items():
        table.add_row(name.replace("_", " "), f"{speed:,.0f}", f"{1e6 / speed:,.1f}")
    console = Console()
    console.print(table)
    console.print(f"opened in {opening * 1e3:.1f} ms", highlight=False)
    if read < needed:
        console.print(f"streaming after {read:,} tokens: the cache was not full", highlight=False)
    return 0


def tokens_to_read(metadata: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens that fill context and cache, and how many are read before streaming is measured."""
    cache = metadata["cache"]
    needed = metadata["model"]["context"] + (cache["size"] if cache else 0)
    return needed, min(max(TEXT, needed), MOST)


def common_text(vocabulary: int, tokens: int, seed: int = 0) -> NDArray[np.int64]:
    """Random ids, those of common words more often (Zipf's law)."""
    u = np.random.default_rng(seed).random(tokens)
    ids = np.exp(u * np.log(vocabulary + 1.0)) - 1
    return np.asarray(np.minimum(ids, vocabulary - 1), np.int64)


def _streaming(step: Callable[[int], None], ids: NDArray[np.int64], seconds: float) -> float:
    """Tokens a second of a step that is repeated for so long."""
    step(int(ids[0]))
    done, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds or not done:
        step(int(ids[done % len(ids)]))
        done += 1
    return done / max(spent, 1e-9)


def _scoring(engine: "Engine", ids: NDArray[np.int64], seconds: float, threads: int) -> float:
    """Tokens a second of scoring texts in chunks."""
    engine.score(ids[:64], threads)
    done, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds or not done:
        engine.score(ids, threads)
        done += len(ids) - 1
    return done / max(spent, 1e-9)
