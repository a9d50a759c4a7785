"""Personal memory: its shares fitted on texts, what it saves in others, and what it costs.

    python benchmarks/personal.py MODEL fit --text a.txt b.txt
    python benchmarks/personal.py MODEL type --text letters.txt
    python benchmarks/personal.py MODEL speed --text letters.txt

Every paragraph of a text is a message: it is read with the memory of the messages before it, then
learned. `fit` finds the shares of states and words that give all texts together the fewest bits;
`type` measures keystroke savings with and without the memory; `speed` compares the processor time
of a question with a memory with that of one with a cache.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np

from micronet_lm.runtime.engine import Session
from micronet_lm.runtime.model import LM, load
from micronet_lm.runtime.personal import STATE_SHARE, WORD_SHARE, Personal
from micronet_lm.typist import ModelKeyboard, measure

STATES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
WORDS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("what", choices=["fit", "type", "speed"])
    parser.add_argument("--text", type=Path, nargs="+", required=True)
    parser.add_argument("--characters", type=int, default=40_000, help="of each text, at most")
    arguments = parser.parse_args()
    lm = load(arguments.model)
    with tempfile.TemporaryDirectory() as name:
        for text in arguments.text:
            whole = text.read_text(encoding="utf-8", errors="replace")
            own = "".join(f"{line}\n" for line in paragraphs(whole))[: arguments.characters]
            place = Path(name) / text.name
            if arguments.what == "fit":
                fit(lm, own, place, text.name)
            elif arguments.what == "type":
                keystrokes(lm, own, place, text.name)
            else:
                speed(lm, own, place)
    if arguments.what == "fit" and len(TABLES) > 1:
        show("all", sum(TABLES[1:], TABLES[0]) / len(TABLES))


def paragraphs(text: str) -> Iterator[str]:
    """Put the lines of each paragraph together; in a text without empty lines each is its own."""
    plain = text.replace("\r", "")
    for part in plain.split("\n\n" if plain.count("\n\n") > 3 else "\n"):
        if line := " ".join(part.split()):
            yield line


TABLES: list[np.ndarray] = []


def fit(lm: LM, text: str, place: Path, name: str) -> None:
    """Print the bits per token for each pair of shares."""
    tries = {"none": (0.0, 0.0), "states": (0.5, 0.0), "words": (0.0, 0.5)}
    rows: list[list[float]] = []
    ramps: list[tuple[float, float]] = []
    # One file for all; each look at it has shares of its own.
    memories = {key: Personal(lm, place, shares=shares) for key, shares in tries.items()}
    for line in text.splitlines():
        states = {key: lm.start(memories[key]) for key in tries}
        for state in states.values():
            state.feed_words(["<eos>"])
        own = memories["none"]._memories
        ramp = min(1.0, len(own.following) / 200), min(1.0, sum(own.counts) / 200)
        for token in [*lm.encoder.tokens(line), "<eos>"]:
            rows.append([math.exp(state.logprob(token)) for state in states.values()])
            ramps.append(ramp)
            for state in states.values():
                state.feed_words([token])
        memories["none"].learn(line + "\n")
    p, s, w = np.array(rows).T
    ramp_s, ramp_w = np.array(ramps).T
    with np.errstate(invalid="ignore", divide="ignore"):
        of_states = np.where(ramp_s > 0, (s - (1 - 0.5 * ramp_s) * p) / (0.5 * ramp_s), 0).clip(0)
        of_words = np.where(ramp_w > 0, (w - (1 - 0.5 * ramp_w) * p) / (0.5 * ramp_w), 0).clip(0)
    table = np.empty((len(STATES), len(WORDS)))
    for i, a in enumerate(STATES):
        for j, b in enumerate(WORDS):
            x, y = a * ramp_s, b * ramp_w
            table[i, j] = -np.log2((1 - x - y) * p + x * of_states + y * of_words).mean()
    TABLES.append(table)
    show(f"{name}, {len(p):,} tokens", table)


def show(name: str, table: np.ndarray) -> None:
    best = np.unravel_index(table.argmin(), table.shape)
    print(f"\n{name}: bits per token; best: states {STATES[best[0]]}, words {WORDS[best[1]]}\n")
    print("| states \\ words | " + " | ".join(map(str, WORDS)) + " |\n" + "|---" * 8 + "|")
    for share, row in zip(STATES, table, strict=True):
        print(f"| {share} | " + " | ".join(f"{x:.4f}" for x in row) + " |")


def keystrokes(lm: LM, text: str, place: Path, name: str) -> None:
    """Type a text message by message: without memory, with one cache, with a memory."""
    keyboards = {
        "anew with each message": ModelKeyboard(lm, learning=False),
        "one session": ModelKeyboard(lm),
        "anew, with a personal memory": ModelKeyboard(lm, personal=lm.personal(place)),
    }
    print(f"\n{name}\n\n| | savings, % | top-1, % | top-3, % | unknown, % | words |")
    print("|---" * 6 + "|")
    for title, keyboard in keyboards.items():
        found = measure(keyboard, text)
        numbers = (found.savings, found.top_1, found.top_3, found.unknown)
        print(f"| {title} | " + " | ".join(f"{n:.1f}" for n in numbers) + f" | {found.words:,} |")


def speed(lm: LM, text: str, place: Path) -> None:
    """Compare the processor time of a step with a full cache, a full memory, and both."""
    personal = lm.personal(place)
    personal.learn(text)
    ids = lm.encoder.ids(text)
    long = lm.engine.start()
    long.feed_many(ids[-(lm.shape.cache + 1) :])
    sessions: dict[str, Session] = {"little in the cache": lm.engine.start(), "a full cache": long}
    sessions["a full memory"], sessions["both"] = lm.engine.start(), long.fork()
    for title in ("a full memory", "both"):
        personal.renew(sessions[title], personal.version)
    for title in ("little in the cache", "a full memory"):
        sessions[title].feed_many(ids[:20])
    print(f"{personal.states} states, {len(personal.words())} words; {STATE_SHARE}, {WORD_SHARE}")
    times: dict[str, list[list[float]]] = {title: [[], []] for title in sessions}
    room = np.empty(len(lm.vocabulary), np.float32)
    asks: tuple[Callable[[Session], object], ...] = (
        lambda session: session.top_k(5),
        lambda session: session.log_distribution(room),
    )
    for round_number in range(30):
        for title, first in sessions.items():
            session = first.fork()  # the cache holds the same number of states in every round
            ask = asks[round_number % 2]
            begin = time.process_time()
            for token in ids[round_number * 20 : round_number * 20 + 20].tolist():
                session.feed(token)
                ask(session)
            times[title][round_number % 2].append((time.process_time() - begin) / 20)
    print("| a step with | to the best 5, µs | to all probabilities, µs |\n|---|---|---|")
    for title, (best, every) in times.items():
        print(f"| {title} | {1e6 * median(best):.0f} | {1e6 * median(every):.0f} |")


if __name__ == "__main__":
    main()
