"""How good models are from the first word on, beside a trigram counter and KenLM's 5-gram.

A text begins at a line's beginning: a model has read one line end and nothing else. Its first n
words are predicted one by one; the next text begins at the first line after them. All models see
the same texts and are trained on the same words.

    python benchmarks/short_texts.py model.safetensors --corpus data/python-docs --lmplz lmplz

Perplexity is over all tokens. What a keyboard would suggest are the likeliest words without
`<unk>` and `<eos>`; recall is how often the next word is among them, where it is neither. Keystroke
savings are 100 · (characters − keystrokes) / characters with three suggestions, line by line: a
suggestion is taken as soon as it is right, for one keystroke that gives the space, too. Unknown
words, whose characters a corpus does not keep, and line ends count neither way.

`lmplz` is KenLM's program that estimates models (in the source package `kenlm`; it needs Boost).
Without `--lmplz` KenLM is left out.
"""

import argparse
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from micronet_lm.corpus import Corpus
from micronet_lm.corpus.vocabulary import EOS, UNK
from micronet_lm.corpus.words import FLIP
from micronet_lm.runtime.native import NativeEngine
from micronet_lm.typist import Strokes
from ngrams import KenLM, Trigram

SLOTS = 3


class Reading(Protocol):
    """A text being read: a session of an engine, or an n-gram model's."""

    def feed(self, token: int) -> None:
        """Read the next word."""

    def log_distribution(self, out: Any = None) -> NDArray[np.float32]:
        """Return the log-probabilities of all words."""


class Model(Protocol):
    """What is compared."""

    def start(self) -> Reading:
        """Begin a text."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """The vocabulary as a keyboard sees it."""

    line_end: int
    unknown: int
    letters: NDArray[np.uint32]
    """(V, longest) characters, without the marks of spacing; zeros after the last."""

    @classmethod
    def of(cls, corpus: Corpus) -> "Words":
        """Take a corpus's vocabulary apart."""
        words = list(corpus.vocabulary.words)
        bare = [word.replace(FLIP, "") for word in words]
        width = max(map(len, bare))
        letters = np.array([[*map(ord, word), *[0] * (width - len(word))] for word in bare])
        return cls(
            line_end=words.index(EOS), unknown=words.index(UNK), letters=letters.astype(np.uint32)
        )

    def suggested(self, token: int) -> bool:
        """Return whether a keyboard may suggest it."""
        return token not in (self.line_end, self.unknown)

    def before(self, logs: NDArray[np.float32], token: int) -> NDArray[np.int64]:
        """List the words that would be suggested before this one; ties by the smaller id."""
        ahead = logs > logs[token]
        ahead[:token] |= logs[:token] == logs[token]
        ahead[[self.line_end, self.unknown]] = False
        return np.flatnonzero(ahead)

    def typed(self, token: int, before: NDArray[np.int64]) -> int | None:
        """Count the letters to type until a word is suggested; nothing where it never is."""
        length = int(np.count_nonzero(self.letters[token]))
        same = self.letters[before, :length] == self.letters[token, :length]
        shared = np.concatenate(
            [[len(before)], np.logical_and.accumulate(same, axis=1).sum(axis=0)]
        )
        shown = np.flatnonzero(shared[:length] < SLOTS)
        return int(shown[0]) if len(shown) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", type=Path, nargs="+", help="packed models of the corpus")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--lmplz", help="KenLM's program of that name")
    parser.add_argument("--split", default="test")
    parser.add_argument("--lengths", type=int, nargs="*", default=[5, 10, 30, 100, 1000])
    parser.add_argument("--tokens", type=int, default=40_000, help="of the split, at most")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    corpus = Corpus.open(arguments.corpus)
    words = Words.of(corpus)
    train = np.asarray(corpus.split("train")).tolist()
    size = corpus.vocabulary.size
    models: dict[str, Model] = {str(path): NativeEngine(path) for path in arguments.models}
    models["trigram"] = Trigram(train, size)
    if arguments.lmplz:
        with tempfile.TemporaryDirectory() as folder:
            models["KenLM 5-gram"] = KenLM.estimated(
                arguments.lmplz, train, size, words.line_end, Path(folder)
            )
    ids = np.asarray(corpus.split(arguments.split))[: arguments.tokens].tolist()
    texts = {f"{n:,} tokens": list(texts_of(ids, words.line_end, n)) for n in arguments.lengths}
    texts["lines"] = list(lines_of(ids, words.line_end))
    results = {
        name: {kind: measure(model, words, own) for kind, own in texts.items()}
        for name, model in models.items()
    }
    for name, model in models.items():
        results[name]["lines"]["savings"] = savings(model, words, corpus, texts["lines"])
    if arguments.json:
        print(json.dumps(results))
    else:
        for measured in ("perplexity", "top-1", "top-3"):
            print_table(measured, results)
        print("\nKeystroke savings with three suggestions, line by line:")
        for name, found in results.items():
            print(f"  {found['lines']['savings']:.1f} %  {name}")


def texts_of(ids: Sequence[int], line_end: int, length: int) -> Iterator[list[int]]:
    """Cut out texts that begin at a line's beginning and do not overlap."""
    at = 0
    while at + length <= len(ids):
        yield list(ids[at : at + length])
        at += length
        while at < len(ids) and ids[at - 1] != line_end:
            at += 1


def lines_of(ids: Sequence[int], line_end: int) -> Iterator[list[int]]:
    """Cut out all lines, each with its line end."""
    begin = 0
    for at, token in enumerate(ids):
        if token == line_end:
            yield list(ids[begin : at + 1])
            begin = at + 1


def predictions(
    model: Model, words: Words, text: Sequence[int]
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Give each word of a text with the log-probabilities of all words before it is read."""
    reading = model.start()
    before = words.line_end
    for token in text:
        reading.feed(before)
        yield token, reading.log_distribution()
        before = token


def measure(model: Model, words: Words, texts: Sequence[Sequence[int]]) -> dict[str, float]:
    """Measure perplexity and recall over texts that each begin afresh."""
    losses, ranks = [], []
    for text in texts:
        for token, logs in predictions(model, words, text):
            losses.append(-float(logs[token]))
            if words.suggested(token):
                ranks.append(len(words.before(logs, token)))
    own = np.array(ranks)
    return {
        "texts": len(texts),
        "perplexity": math.exp(float(np.mean(losses))),
        "top-1": 100 * float((own < 1).mean()),
        "top-3": 100 * float((own < 3).mean()),
    }


def savings(model: Model, words: Words, corpus: Corpus, lines: Sequence[Sequence[int]]) -> float:
    """Measure the keystroke savings over lines that each begin afresh, in per cent."""
    strokes = Strokes()
    for line in lines:
        names = [corpus.vocabulary.words[token] for token in line]
        written = 0
        strokes.begin_line()
        for at, (token, logs) in enumerate(predictions(model, words, line)):
            if token == words.line_end:
                break
            end = len(corpus.tokenizer.join(names[: at + 1]))
            before, written = written, end
            if not words.suggested(token):
                strokes.leave_out()
                continue
            length = int(np.count_nonzero(words.letters[token]))
            for _ in range(end - before - length):
                strokes.space()
            strokes.word(length, words.typed(token, words.before(logs, token)))
    return strokes.savings


def print_table(measured: str, results: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print one number of all models and texts."""
    kinds = list(next(iter(results.values())))
    unit = "" if measured == "perplexity" else ", %"
    print(f"\n| {measured}{unit} | " + " | ".join(kinds) + " |")
    print("|---" * (len(kinds) + 1) + "|")
    for name, found in results.items():
        print(f"| {name} | " + " | ".join(f"{found[kind][measured]:.1f}" for kind in kinds) + " |")


if __name__ == "__main__":
    main()
