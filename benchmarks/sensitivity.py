"""Measure the cost of a point of a sensitivity curve, in evaluations of the same text.

An analysis over a short grid (pruning, measuring, restoring, writing) alternates with as many plain
evaluations. The ratio should stay below 1.1.

    python benchmarks/sensitivity.py runs/small
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch

from micronet_lm.compression.magnitude import prunable
from micronet_lm.compression.sensitivity import TOKENS, analyse
from micronet_lm.training import Run, evaluate
from micronet_lm.training.processes import Processes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("run", type=Path, help="a trained run")
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    run = Run.open(arguments.run)
    model, ids = run.model(), run.corpus().split("valid")[: arguments.tokens]
    alone = Processes(rank=0, count=1, device=torch.device("cpu"))
    points = 1 + len(prunable(model))
    evaluate(model, ids)  # to warm up
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.rounds):
            begin = time.perf_counter()
            analyse(model, ids, Path(folder) / f"{turn}.jsonl", alone, grid=(0.5,))
            middle = time.perf_counter()
            for _ in range(points):
                evaluate(model, ids)
            rows.append(((middle - begin) / points, (time.perf_counter() - middle) / points))
    point, plain = (statistics.median(times) for times in zip(*rows, strict=True))
    report = {
        "run": str(run.path),
        "tokens": len(ids),
        "points": points,
        "point_seconds": point,
        "evaluation_seconds": plain,
        "ratio": statistics.median(one / other for one, other in rows),
    }
    if arguments.json:
        print(json.dumps(report))
        return
    print(
        f"{run.path}, {len(ids):,} tokens, {points} points: {1000 * point:.0f} ms per point, "
        f"{1000 * plain:.0f} ms per evaluation: {report['ratio']:.3f}"
    )


if __name__ == "__main__":
    main()
