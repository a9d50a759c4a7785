"""Measure the effect of a cache's ramp: perplexity of short texts and of one long text.

A packed model's λ is chosen for a full cache. Here the same model gets other ramps, and scores the
split once as one text and once as texts of a few tokens each, which begin with an empty cache.

    python benchmarks/cache_ramp.py model.safetensors --corpus data/wikitext-2
"""

import argparse
import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.corpus import Corpus
from micronet_lm.runtime.native import NativeEngine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--split", default="valid")
    parser.add_argument("--ramps", type=int, nargs="*", default=[0, 50, 100, 200, 500, 1000])
    parser.add_argument("--lengths", type=int, nargs="*", default=[10, 30, 100, 300, 1000])
    parser.add_argument(
        "--tokens", type=int, default=60_000, help="largest number of tokens of the split"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    ids = np.asarray(Corpus.open(arguments.corpus).split(arguments.split))[: arguments.tokens]
    packed = read_packed(arguments.model)
    if packed.cache is None:
        parser.error(f"{arguments.model} has no cache")
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        for ramp in arguments.ramps:
            write_packed(path, replace(packed, cache=replace(packed.cache, ramp=ramp)))
            engine = NativeEngine(path)
            own = {str(n): of_pieces(engine, ids, n) for n in arguments.lengths}
            results[ramp] = {**own, "all": of_pieces(engine, ids, len(ids))}
    if arguments.json:
        print(json.dumps({"tokens": len(ids), "perplexity": results}))
        return
    columns = [*(f"{n:,} tokens" for n in arguments.lengths), "one text"]
    print("| ramp | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for ramp, found in results.items():
        print(f"| {ramp} | " + " | ".join(f"{x:.2f}" for x in found.values()) + " |")


def of_pieces(engine: NativeEngine, ids: NDArray[np.unsignedinteger], length: int) -> float:
    """Return the perplexity of texts of `length` tokens; the first of each is not predicted."""
    texts = [ids[at : at + length] for at in range(0, len(ids) - 1, length)]
    texts = [text for text in texts if len(text) > 1]
    losses = np.concatenate(engine.score_batch(texts, threads=2))
    return math.exp(-losses.mean(dtype=np.float64))


if __name__ == "__main__":
    main()
