"""Measure larger caches whose votes fade, on a packed model as it is: perplexity by size and fade.

python benchmarks/cache_fade.py wikitext-2 --corpus data/wikitext-2

Only the size and the fade of the file's cache are changed; its theta and lambda stay as they were
searched for its own size. The best pair on the validation split is then measured on the test split.
One evaluation of WikiText-2's validation split takes half a minute to a minute on one core.
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from micronet_lm.artifact import PackedModel, read_packed, write_packed
from micronet_lm.corpus import Corpus
from micronet_lm.runtime.native import NativeEngine
from micronet_lm.runtime.places import packed_file


def variants(sizes: list[int], fades: list[int], own: int) -> Iterator[tuple[int, int]]:
    """Yield the file's own cache first, then all pairs of a size and a fade."""
    yield own, 0
    for size in sizes:
        for fade in fades:
            if (size, fade) != (own, 0):
                yield size, fade


def measured(model: PackedModel, corpus: Corpus, split: str, size: int, fade: int) -> float:
    """Return the perplexity of a split under the model with another cache."""
    if model.cache is None:
        raise SystemExit("the model has no cache: name one that has")
    changed = replace(model, cache=replace(model.cache, size=size, fade=fade))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        write_packed(path, changed)
        scores = NativeEngine(path).score(corpus.split(split)[:].astype("int64"), threads=1)
    return math.exp(-float(scores.mean(dtype="float64")))


def main() -> None:
    """Print a line of JSON per pair, as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a packed file, or the name of a model that ships")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[3000, 6000, 12000])
    parser.add_argument("--fades", type=int, nargs="+", default=[0, 1500, 3000, 6000])
    arguments = parser.parse_args()
    model, corpus = read_packed(packed_file(Path(arguments.model))), Corpus.open(arguments.corpus)
    found: dict[tuple[int, int], float] = {}
    own = model.cache.size if model.cache else 0
    for size, fade in variants(arguments.sizes, arguments.fades, own):
        begin = time.process_time()
        found[size, fade] = measured(model, corpus, "valid", size, fade)
        seconds = time.process_time() - begin
        line = {"size": size, "fade": fade, "valid": found[size, fade], "cpu_seconds": seconds}
        print(json.dumps(line), flush=True)
    best = min(found, key=found.__getitem__)
    for size, fade in ((own, 0), best):
        test = measured(model, corpus, "test", size, fade)
        print(json.dumps({"size": size, "fade": fade, "test": test}), flush=True)


if __name__ == "__main__":
    main()
