"""Print the validation perplexity of pruned runs over their sparsity, by way of pruning.

Reads what the runs measured in training, and counts their zeros; `draw.py pruning` draws the JSON.

    python benchmarks/pruning.py --dense runs/small --json NAME=RUN,RUN,... [NAME=RUN,...]
"""

import argparse
import json
from pathlib import Path

from micronet_lm.compression.magnitude import model_sparsity
from micronet_lm.training import Run, perplexity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("lines", nargs="+", metavar="NAME=RUN,RUN")
    parser.add_argument("--dense", required=True, metavar="RUN", help="the run before pruning")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    named = [line.partition("=") for line in arguments.lines]
    lines = {
        name: sorted((point(folder) for folder in folders.split(",")), key=lambda p: p["sparsity"])
        for name, _, folders in named
    }
    dense = point(arguments.dense)
    if arguments.json:
        print(json.dumps({"dense": dense, "lines": lines}))
        return
    for name, points in {"before pruning": [dense], **lines}.items():
        for found in points:
            print(f"{name:40} {found['sparsity']:.4f} {found['perplexity']:8.2f}")


def point(folder: str) -> dict[str, float]:
    """Return a run's sparsity and its validation perplexity."""
    run = Run.open(Path(folder))
    loss = run.progress().best_loss
    if loss is None:
        raise SystemExit(f"{folder} has not been evaluated")
    return {"sparsity": model_sparsity(run.model()), "perplexity": perplexity(loss)}


if __name__ == "__main__":
    main()
