"""Samples of a model: continuations of a few lines of the test split."""

import tempfile
from itertools import pairwise
from pathlib import Path

from micronet_lm.artifact.packing import model_of_run
from micronet_lm.artifact.writer import write_packed
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.vocabulary import EOS, UNK
from micronet_lm.runtime.model import load

LINES, PROMPT, WORDS = 3, 5, 30
"""Number of lines, words that each begins with, and words that the model adds."""

BEFORE = 500
"""Tokens of the split read before a line: with a nearly empty cache, text repeats itself."""

TEMPERATURE, TOP_K = 0.8, 40


def write_samples(packed: Path, corpus: Corpus) -> list[tuple[str, str]]:
    """Return each line's beginning and a packed model's continuation."""
    lm, ids = load(packed), corpus.split("test")
    found = []
    for number, low in enumerate(_beginnings(corpus)):
        high = min(len(ids), low + PROMPT)
        state = lm.start()
        state.feed_words(corpus.vocabulary.decode(ids[max(0, low - BEFORE) : high]))
        written = "".join(state.write(WORDS, TEMPERATURE, TOP_K, seed=number))
        found.append((corpus.decode(ids[low:high]), " ".join(written.split())))
    return found


def samples_of_run(run: Path, corpus: Corpus) -> list[tuple[str, str]]:
    """Return samples of a run's best model, through a temporary packed file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        write_packed(file, model_of_run(run, corpus))
        return write_samples(file, corpus)


def _beginnings(corpus: Corpus) -> list[int]:
    """Return positions of long lines that begin with known words, spread over the test split."""
    ids, end, unknown = corpus.split("test"), *map(corpus.vocabulary.id, (EOS, UNK))
    ends = [-1, *(int(place) for place in (ids == end).nonzero()[0])]
    lines = [
        low + 1
        for low, high in pairwise(ends)
        if high - low > 3 * PROMPT and unknown not in ids[low + 1 : low + 1 + PROMPT]
    ]
    step = max(1, len(lines) // LINES)
    return lines[step // 2 :: step][:LINES] or [0]
