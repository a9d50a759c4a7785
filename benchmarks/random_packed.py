"""Write a packed file with random weights, in the shape of a recipe.

Example: python benchmarks/random_packed.py model.safetensors --cache 3000 --sparsity 0.36 --bits 9
"""

import argparse
import time
from pathlib import Path

from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.artifact.writer import write_packed
from micronet_lm.config import PLACEMENTS, Place, load_recipe, merge_recipe

PLACES = {**PLACEMENTS, "all": frozenset(Place)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipe", default="paper/student")
    parser.add_argument("--set", action="append", default=[], metavar="model.context=9")
    parser.add_argument("--vocabulary", type=int, default=267_735)
    parser.add_argument("--cache", type=int, default=0)
    parser.add_argument("--sparsity", type=float, default=0.0)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--table-bits", type=int)
    parser.add_argument("--position-bits", type=int, default=32)
    parser.add_argument("--bias-bits", type=int)
    parser.add_argument("--activation-bits", type=int)
    parser.add_argument("--scale-per-row", action="store_true")
    parser.add_argument("--places", choices=sorted(PLACES), default="none")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    keys = {key: value for key, _, value in (item.partition("=") for item in asked.set)}
    recipe = merge_recipe(
        load_recipe(asked.recipe, {}), {"model.vocabulary": asked.vocabulary, **keys}
    )
    choice = Choice(
        seed=asked.seed,
        cache=asked.cache,
        sparsity=asked.sparsity,
        bits=asked.bits,
        table_bits=asked.table_bits,
        position_bits=asked.position_bits,
        bias_bits=asked.bias_bits,
        activation_bits=asked.activation_bits,
        scale_per_row=asked.scale_per_row,
        places=PLACES[asked.places],
    )
    begin = time.perf_counter()
    model = random_model(recipe.model, choice)
    made = time.perf_counter()
    write_packed(asked.out, model)
    print(
        f"{asked.out}: {asked.out.stat().st_size:,} bytes, made in {made - begin:.1f} s, "
        f"written in {time.perf_counter() - made:.1f} s"
    )


if __name__ == "__main__":
    main()
