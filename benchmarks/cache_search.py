"""Measure the time of a cache search, in evaluations of the same run on the same split.

Each round times one evaluation with a cache of the given size, and one whole search: reading the
split, then trying every theta and lambda. The ratio should stay below 5.

    python benchmarks/cache_search.py runs/cache --size 3000
"""

import argparse
import json
import statistics
import time
from pathlib import Path

from micronet_lm.compression import Surface, search_cache
from micronet_lm.config import CacheConfig
from micronet_lm.model import Cache
from micronet_lm.training import Run, evaluate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("run", type=Path, help="a trained run; WikiText-2 for the real numbers")
    parser.add_argument("--size", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    run = Run.open(arguments.run)
    model, ids = run.model(), run.corpus().split("valid")
    own = model.cache
    rows = []
    for _ in range(arguments.rounds):
        model.cache = Cache(CacheConfig(size=arguments.size))
        begin = time.perf_counter()
        evaluate(model, ids)
        middle = time.perf_counter()
        model.cache = own
        search = search_cache(model, Surface(model, ids), size=arguments.size)
        rows.append((middle - begin, time.perf_counter() - middle))
    thetas = len({point.theta for point in search.points})
    report = {
        "run": str(run.path),
        "size": arguments.size,
        "tokens": len(ids) - 1,
        "evaluation_seconds": statistics.median(row[0] for row in rows),
        "search_seconds": statistics.median(row[1] for row in rows),
        "ratio": statistics.median(searching / evaluating for evaluating, searching in rows),
        "points": len(search.points),
        "thetas": thetas,
    }
    if arguments.json:
        print(json.dumps(report))
        return
    print(
        f"{run.path}, {report['tokens']:,} tokens, cache {arguments.size:,}: "
        f"evaluation {report['evaluation_seconds']:.1f} s, search {report['search_seconds']:.1f} s "
        f"({thetas} thetas, {report['points']} points): {report['ratio']:.2f} evaluations"
    )


if __name__ == "__main__":
    main()
