"""Draw the learning curves of runs: validation perplexity with marks, training perplexity thin.

python benchmarks/curves.py OUT.png NAME=RUN [NAME=RUN ...]
"""

import argparse
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.ticker import ScalarFormatter

from micronet_lm.training.metrics import read_metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT.png")
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN")
    parser.add_argument("--title", default="")
    arguments = parser.parse_args()
    mpl.use("Agg")
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for number, named in enumerate(arguments.runs):
        name, _, folder = named.partition("=")
        lines = read_metrics(Path(folder) / "metrics.jsonl")
        colour = f"C{number}"
        for kind, style in (
            ("train", {"linewidth": 0.6, "alpha": 0.5}),
            ("valid", {"marker": "o"}),
        ):
            points = [(x["step"], x["perplexity"]) for x in lines if x["kind"] == kind]
            label = f"{name}: {points[-1][1]:.1f}" if kind == "valid" else None
            axes.plot(*zip(*points, strict=True), color=colour, label=label, **style)
    axes.set(xlabel="step", ylabel="perplexity (log scale)", yscale="log", title=arguments.title)
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(ScalarFormatter())
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.set_ylim(top=1000)
    axes.legend(title="validation, after the last step")
    figure.savefig(arguments.out, dpi=110)


if __name__ == "__main__":
    main()
