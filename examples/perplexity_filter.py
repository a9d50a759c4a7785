"""Keep the lines of a file that read like the text that a model was trained on.

A perplexity alone prefers garbage: unknown words are all one word to the model, and easy to guess.
So lines with many unknown words are dropped first.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import micronet_lm as mn
from micronet_lm.errors import MicronetError


def kept(
    lm: mn.LM, lines: Sequence[str], *, perplexity: float, unknown_share: float, threads: int = 1
) -> Iterator[str]:
    """Yield the lines below both limits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mn.UnknownWordsWarning)  # they are what is looked for
        scored = lm.score_lines(lines, threads)
    for line in scored:
        if line.unknown_share <= unknown_share and line.perplexity <= perplexity:
            yield line.text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", default="demo")
    parser.add_argument(
        "--perplexity", type=float, default=150.0, help="the most that a line may have"
    )
    parser.add_argument(
        "--unknown", type=float, default=0.15, help="the largest share of unknown words"
    )
    arguments = parser.parse_args()
    lines = [line for line in arguments.file.read_text("utf-8-sig").splitlines() if line.strip()]
    lm = mn.load(arguments.model)
    found = list(
        kept(lm, lines, perplexity=arguments.perplexity, unknown_share=arguments.unknown, threads=2)
    )
    print(*found, sep="\n")
    print(f"{len(found)} of {len(lines)} lines kept", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except (OSError, MicronetError) as error:
        sys.exit(str(error))
