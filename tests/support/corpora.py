"""Corpora for tests: made-up texts of a few thousand words, and where WikiText-2 is found."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from micronet_lm.corpus import Corpus, build_corpus

MISSING = "WikiText-2 is not here: set MICRONET_DATA to a folder with wikitext-2*.zip or .tar*"


def wikitext_2_archive() -> Path | None:
    """Return the archive in the folder MICRONET_DATA, or else in `../shared/data`."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("MICRONET_DATA") or beside)
    found = sorted([*folder.glob("wikitext-2*.zip"), *folder.glob("wikitext-2*.tar*")])
    return found[0] if found else None


def squares_corpus(folder: Path) -> Corpus:
    """Build two hundred made-up words whose order has something to learn."""
    random = np.random.default_rng(0)
    firsts = (random.integers(40) for _ in range(600))
    lines = [" ".join(f"w{(first * k * k) % 199}" for k in range(1, 9)) for first in firsts]
    text = write_lines(folder / "text.txt", lines)
    return build_corpus(
        str(text), folder / "built", tokenizer="wikitext", min_count=1, split=(0.8, 0.1, 0.1)
    )


def recurring_corpus(folder: Path) -> Corpus:
    """Build lines of a few words of their own, in no order: only a cache can predict them."""
    random = np.random.default_rng(0)
    lines = [
        " ".join(f"w{word}" for word in random.choice(random.integers(180, size=5), size=40))
        for _ in range(300)
    ]
    text = write_lines(folder / "text.txt", lines)
    return build_corpus(str(text), folder / "built", tokenizer="wikitext", min_count=1)


def write_story(folder: Path) -> Path:
    """Write four hundred lines of 97 words, for verbs whose models need not learn anything."""
    lines = [" ".join(f"word{(i * j) % 97}" for j in range(1, 12)) for i in range(400)]
    return write_lines(folder / "story.txt", lines)


def story_corpus(folder: Path) -> Corpus:
    return build_corpus(str(write_story(folder)), folder / "corpus")


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
