"""Draw a sweep of widths: validation perplexity over storage, one line a method.

python benchmarks/quantization.py runs/sweep/sweep.json OUT.png
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

HIGHEST = 1.5
"""Points above so many times the unquantized perplexity are left out of the figure."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sweep", type=Path, metavar="SWEEP.json")
    parser.add_argument("out", type=Path, metavar="OUT.png")
    parser.add_argument("--title", default="")
    arguments = parser.parse_args()
    points: list[dict[str, Any]] = json.loads(arguments.sweep.read_text("utf-8"))["points"]
    whole = next(point for point in points if point["method"] == "unquantized")
    mpl.use("Agg")
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.axhline(
        whole["perplexity"],
        color="0.6",
        linewidth=1,
        label=f"unquantized: {whole['perplexity']:.2f} at {whole['storage']:,.0f}",
    )
    for method in dict.fromkeys(point["method"] for point in points):
        own = [p for p in points if p["method"] == method and p["bits"] < whole["bits"]]
        shown = [p for p in own if p["perplexity"] < HIGHEST * whole["perplexity"]]
        if not shown:
            continue
        axes.plot(
            *zip(*((p["storage"], p["perplexity"]) for p in shown), strict=True), "o-", label=method
        )
        for point in shown:
            place = (point["storage"], point["perplexity"])
            axes.annotate(str(point["bits"]), place, textcoords="offset points", xytext=(4, 5))
    axes.set(
        xlabel="storage (32-bit parameters, rules challenge); numbers are bits",
        ylabel="validation perplexity",
        title=arguments.title,
    )
    axes.grid(visible=True, alpha=0.25)
    axes.legend()
    figure.savefig(arguments.out, dpi=110)


if __name__ == "__main__":
    main()
