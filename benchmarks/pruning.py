"""Draw the validation perplexity of pruned runs over their sparsity, one line a way of pruning.

python benchmarks/pruning.py OUT.png --dense runs/small NAME=RUN,RUN,... [NAME=RUN,...]
"""

import argparse
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

from micronet_lm.compression.magnitude import model_sparsity
from micronet_lm.training import Run, perplexity


def point(folder: str) -> tuple[float, float]:
    """A run's sparsity and its validation perplexity."""
    run = Run.open(Path(folder))
    loss = run.progress().best_loss
    if loss is None:
        raise SystemExit(f"{folder} has not been evaluated")
    return model_sparsity(run.model()), perplexity(loss)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT.png")
    parser.add_argument("lines", nargs="+", metavar="NAME=RUN,RUN")
    parser.add_argument("--dense", required=True, metavar="RUN", help="the run before pruning")
    parser.add_argument("--title", default="")
    arguments = parser.parse_args()
    mpl.use("Agg")
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    dense = point(arguments.dense)
    axes.axhline(dense[1], color="0.6", linewidth=1, label=f"before pruning: {dense[1]:.2f}")
    for line in arguments.lines:
        name, _, folders = line.partition("=")
        points = sorted(point(folder) for folder in folders.split(","))
        axes.plot(*zip(*points, strict=True), "o-", label=name)
        for sparsity, value in points:
            print(f"{name:40} {sparsity:.4f} {value:8.2f}")
    axes.set(xlabel="sparsity", ylabel="validation perplexity", title=arguments.title)
    axes.grid(visible=True, alpha=0.25)
    axes.legend()
    figure.savefig(arguments.out, dpi=110)


if __name__ == "__main__":
    main()
