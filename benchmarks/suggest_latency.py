"""Processor time of suggestions, by what was typed: median, 95th and 99th percentile.

    python benchmarks/suggest_latency.py MODEL --text letters.txt [--words 400]
    python benchmarks/suggest_latency.py --paper [--cache-full]

Processor time, not wall time: other processes do not count. `next`: before the first letter of a
word; `letters`: after each letter; `errors`: after letters with a typing error in them; `first`:
the first of all, which prepares what later ones use. `feed`: reading a letter or a space, which
comes before every suggestion; a space reads a word.

`--paper` makes a model of the paper's size: random weights, 36 % sparse, 9 bits, a cache of 3,000,
and 267,735 words that look like English, drawn letter by letter as those of the shipped model are.
Its bins have the shares of WikiText-103's test split, and what is typed follows them, too.
"""

import argparse
import random
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from micronet_lm.accounting.recipe_target import PAPER_BINS, PAPER_SHARES
from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES, load_recipe
from micronet_lm.runtime.model import LM, load

CACHE = 3_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", nargs="?", help="a packed model; the shipped one without it")
    parser.add_argument("--paper", action="store_true", help="a random model of the paper's size")
    parser.add_argument("--text", type=Path, help="what is typed; words of the model without it")
    parser.add_argument("--words", type=int, default=300)
    parser.add_argument("--keep", type=Path, help="keep the random model here, and use it again")
    parser.add_argument("--cache-full", action="store_true", help="begin with a full cache")
    arguments = parser.parse_args()
    if arguments.paper:
        with tempfile.TemporaryDirectory() as folder:
            path = arguments.keep or Path(folder) / "paper.safetensors"
            if not path.exists():
                write_paper_size(path)
            lm = load(path)
    else:
        lm = load(arguments.model or "demo")
    measure(lm, arguments)


def measure(lm: LM, arguments: argparse.Namespace) -> None:
    """Type words, letter by letter, and print the times."""
    if arguments.text:
        words = arguments.text.read_text(encoding="utf-8").split()[: arguments.words]
    else:
        words = typed_words(lm, arguments.words, seed=1)
    times: dict[str, list[float]] = {
        "first": [],
        "next": [],
        "letters": [],
        "errors": [],
        "feed": [],
    }
    state = lm.start()
    state.feed("\n")
    if arguments.cache_full:
        state.feed(" ".join(typed_words(lm, lm.shape.cache + 100, seed=2)) + " ")

    def timed(kind: str, call: object, *given: object) -> None:
        begin = time.process_time_ns()
        call(*given)  # type: ignore[operator]
        times[kind].append((time.process_time_ns() - begin) / 1e6)

    begun = state.fork()
    begun.feed("thqs")  # with an error: words that begin nearly so are looked for
    timed("first", begun.suggest, 3)
    for word in words:
        timed("next", state.suggest, 3)
        wrong = state.fork()
        for place, letter in enumerate(word):
            timed("feed", state.feed, letter)
            timed("letters", state.suggest, 3)
            wrong.feed("q" if place == 2 else letter)
            if 2 <= place < 8:
                timed("errors", wrong.suggest, 3)
        timed("feed", state.feed, " ")
    print("| | times | median | 95th percentile | 99th | most |\n|---|---|---|---|---|---|")
    for kind, own in times.items():
        low, high, highest = np.percentile(own, [50, 95, 99])
        print(
            f"| {kind} | {len(own):,} | {low:.3f} | {high:.3f} | {highest:.3f} | {max(own):.2f} |"
        )


def typed_words(lm: LM, count: int, seed: int) -> list[str]:
    """Draw words of letters: by the shares of the paper's bins where the model has them."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    size = len(lm.vocabulary)
    if size != PAPER_BINS[0]:
        known = [word for word in lm.vocabulary if word.isalpha()]
        return [known[int(len(known) * chance.random() ** 3)] for _ in range(count)]
    found: list[str] = []
    frequency = _frequency(size)
    drawn = iter(np.random.default_rng(seed).choice(size, 4 * count, p=frequency))
    while len(found) < count:
        if (word := lm.vocabulary[int(next(drawn))]).isalpha():
            found.append(word)
    return found


def write_paper_size(path: Path) -> None:
    """Write a random model of the paper's size whose words look like English."""
    shape = load_recipe("paper/student", {"model.vocabulary": PAPER_BINS[0]}).model
    choice = Choice(
        cache=CACHE,
        sparsity=0.36,
        bits=9,
        bias_bits=32,
        places=CODE_PLACES,
        scale_per_row=True,
        tokenizer="word-2",
    )
    model = random_model(shape, choice)
    model = replace(model, words=english(PAPER_BINS[0]))
    frequency, asked = _frequency(PAPER_BINS[0]), np.array(PAPER_SHARES) / sum(PAPER_SHARES)
    text = np.random.default_rng(0).choice(PAPER_BINS[0], 200, p=frequency)
    for _ in range(3):  # until the bins have their shares of the predictions
        write_packed(path, model)
        session, mass = load(path).engine.start(), np.zeros(len(asked))
        for token in text.tolist():
            session.feed(token)
            chances = np.exp(session.log_distribution().astype(np.float64))
            mass += np.add.reduceat(chances, (0, *PAPER_BINS[1]))
        moved = np.log(asked[1:] / asked[0]) - np.log(mass[1:] / mass[0])
        bias = model.tensors["softmax.tail_bias"]
        values = (bias.values + moved).astype(np.float32)
        tensors = {**model.tensors, "softmax.tail_bias": replace(bias, values=values)}
        model = replace(model, tensors=tensors)
    write_packed(path, model)


def english(count: int) -> list[str]:
    """Return words of the shipped model, and others that are drawn letter by letter like them."""
    own = load("demo").vocabulary
    words = dict.fromkeys(own)
    plain = [word for word in own if word.isalpha() and word.isascii()]
    followers: dict[str, list[str]] = {}
    for word in plain:
        text = f"^^^{word.lower()}$"
        for place in range(3, len(text)):
            followers.setdefault(text[place - 3 : place], []).append(text[place])
    chance = random.Random(0)  # noqa: S311 - no secret
    while len(words) < count:
        text = "^^^"
        while text[-1] != "$":
            text += chance.choice(followers[text[-3:]])
        word = text[3:-1]
        words[word.capitalize() if chance.random() < 0.4 else word] = None
    return list(words)


def _frequency(size: int) -> NDArray[np.float64]:
    """Return the share of each word: Zipf's law within bins of the paper's shares."""
    frequency = 1 / (np.arange(size) + 3.0)
    for (first, last), tokens in zip(
        pairwise((0, *PAPER_BINS[1], size)), PAPER_SHARES, strict=True
    ):
        frequency[first:last] *= tokens / frequency[first:last].sum()
    return np.asarray(frequency / frequency.sum(), np.float64)


if __name__ == "__main__":
    main()
