"""Processor time of suggestions, by what was typed: median, 95th and 99th percentile.

    python benchmarks/suggest_latency.py MODEL --text letters.txt [--words 400]

Processor time, not wall time: other processes do not count. `next`: before the first letter of a
word; `letters`: after each letter; `errors`: after letters with a typing error in them.
"""

import argparse
import random
import time
from pathlib import Path

import numpy as np

from micronet_lm.runtime.model import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", type=Path, help="what is typed; words of the model without it")
    parser.add_argument("--words", type=int, default=300)
    arguments = parser.parse_args()
    lm, chance = load(arguments.model), random.Random(1)  # noqa: S311
    if arguments.text:
        words = arguments.text.read_text(encoding="utf-8").split()[: arguments.words]
    else:
        known = [word for word in lm.vocabulary if word.isalpha()]
        words = [known[int(len(known) * chance.random() ** 3)] for _ in range(arguments.words)]
    times: dict[str, list[float]] = {"next": [], "letters": [], "errors": []}
    state = lm.start()
    state.feed("\n")

    def ask(kind: str, at: object) -> None:
        begin = time.process_time_ns()
        at.suggest(3)  # type: ignore[attr-defined]
        times[kind].append((time.process_time_ns() - begin) / 1e6)

    for word in words:
        ask("next", state)
        wrong = state.fork()
        for place, letter in enumerate(word):
            state.feed(letter)
            ask("letters", state)
            wrong.feed("q" if place == 2 else letter)
            if 2 <= place < 8:
                ask("errors", wrong)
        state.feed(" ")
    for kind, own in times.items():
        low, high, highest = np.percentile(own, [50, 95, 99])
        print(
            f"| {kind} | {len(own):,} | {low:.3f} | {high:.3f} | {highest:.3f} | {max(own):.2f} |"
        )


if __name__ == "__main__":
    main()
