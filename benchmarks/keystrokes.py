"""Keystroke savings of packed models beside KenLM and Presage: one typist, one text, one run.

    python benchmarks/keystrokes.py src/micronet_lm/models/demo.safetensors \
        --corpus data/python-docs --lmplz lmplz --characters 60000

All learn from the training split of the corpus's source and type its test split, or another text.
KenLM's 5-gram (modified Kneser-Ney) suggests its likeliest words of the models' own vocabulary;
Presage is trained by its own program and asked through its own interface. `anew`: everything that
was typed is forgotten at each line's end; `learning`: it is remembered, by the models in the cache,
by Presage in its recency predictor. KenLM cannot learn.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

import presage
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.source import find_source
from micronet_lm.corpus.vocabulary import EOS
from micronet_lm.runtime.model import LM, load
from micronet_lm.typist import Keyboard, ModelKeyboard, Typing, measure
from ngram_engine import NgramEngine
from ngrams import KenLM


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", type=Path, nargs="+", help="packed models of the corpus")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument(
        "--lmplz", help="KenLM's program of that name; without it KenLM is left out"
    )
    parser.add_argument("--text", type=Path, help="the text to type; the test split without it")
    parser.add_argument("--from", type=Path, dest="place", help="where a published corpus is")
    parser.add_argument("--characters", type=int, default=60_000, help="of the text, at most")
    parser.add_argument("--slots", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    corpus = Corpus.open(arguments.corpus)
    learned = source_text(corpus, "train", arguments.place)
    if arguments.text:
        text = arguments.text.read_text(encoding="utf-8")
    else:
        text = source_text(corpus, "test", arguments.place)
    text = text[: arguments.characters].rpartition("\n")[0] + "\n"
    results: dict[str, Typing] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in arguments.models:
            lm = load(path)
            for learning in (False, True):
                results[title(path.name, learning)] = measure(
                    ModelKeyboard(lm, learning=learning), text, slots=arguments.slots
                )
        if arguments.lmplz:
            lm = kenlm(arguments.lmplz, corpus, load(arguments.models[0]), folder)
            keyboard: Keyboard = ModelKeyboard(lm, learning=False)
            results[title("KenLM 5-gram", False)] = measure(keyboard, text, slots=arguments.slots)
        if presage.is_there():
            database = presage.train(learned, folder)
            words = frozenset(corpus.tokenizer.tokens(learned))
            for learning in (False, True):
                keyboard = presage.Presage(
                    database, words, folder, learning=learning, slots=max(arguments.slots, 3)
                )
                results[title("Presage", learning)] = measure(keyboard, text, slots=arguments.slots)
    if arguments.json:
        print(json.dumps({name: found.as_json() for name, found in results.items()}))
    else:
        print_table(results)


def source_text(corpus: Corpus, split: str, place: Path | None) -> str:
    """Read the text of a split again from the corpus's source: a corpus keeps only known words."""
    settings = corpus.manifest
    source = find_source(
        settings.source,
        from_path=place,
        split=settings.split,
        tokenizer=settings.tokenizer,
        downloads=corpus.path.parent,
    )
    return "".join(block.text for block in source.blocks() if block.split == split)


def kenlm(lmplz: str, corpus: Corpus, lm: LM, folder: Path) -> LM:
    """Estimate KenLM's 5-gram of the training split; wrap it as a model of the same words."""
    words = corpus.vocabulary.words
    train = np.asarray(corpus.split("train")).tolist()
    estimated = KenLM.estimated(lmplz, train, len(words), words.index(EOS), folder)
    return LM(NgramEngine(estimated, words, lm.engine.metadata, lm.engine))


def title(name: str, learning: bool) -> str:
    return f"{name}, {'learning' if learning else 'anew'}"


def print_table(results: dict[str, Typing]) -> None:
    one = next(iter(results.values()))
    print(f"{one.characters:,} characters, {one.words:,} words, {one.slots} suggestions\n")
    print("| | savings, % | top-1, % | top-3, % | unknown, % | ms, p50 | p95 | p99 |")
    print("|---|---|---|---|---|---|---|---|")
    for name, found in results.items():
        numbers = (found.savings, found.top_1, found.top_3, found.unknown)
        times = " | ".join(f"{found.latency[key]:.2f}" for key in ("p50", "p95", "p99"))
        print(f"| {name} | " + " | ".join(f"{n:.1f}" for n in numbers) + f" | {times} |")


if __name__ == "__main__":
    main()
