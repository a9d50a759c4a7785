"""What a new word should enter the network as: `<unk>`, or the mean of words that end like it.

    python benchmarks/new_words.py MODEL --corpus data/python-docs --split valid

Bits per byte of a split's text with a learning cache, by the NumPy engine. A new word is read as
`<unk>` (what all engines do), as the mean embedding of the words of the vocabulary that share its
longest ending (2 to 6 letters, 5 words or more, the same spacing), or as the mean of the two.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystrokes import source_text
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.words import unmark
from micronet_lm.runtime.model import LM, load
from micronet_lm.runtime.open_vocabulary import spell
from micronet_lm.runtime.reference.arithmetic import quantize
from micronet_lm.runtime.reference.network import Past

LEAST, LONGEST, SHORTEST = 5, 6, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--split", default="valid")
    arguments = parser.parse_args()
    lm = load(arguments.model, "numpy")
    text = source_text(Corpus.open(arguments.corpus), arguments.split, None)
    tokens = lm.encoder.tokens(text)
    size = len(lm.join(tokens).encode())
    ids = lm.encoder.ids_of(tokens)
    new = dict.fromkeys(tokens[place] for place in np.flatnonzero(ids == lm.encoder.unknown))
    known = len(lm.vocabulary)
    numbers = {word: known + place for place, word in enumerate(new)}
    ids = np.array([numbers.get(token, number) for token, number in zip(tokens, ids, strict=True)])
    ids = np.concatenate([[lm.encoder.line_end], ids])
    logs = spell(lm, list(new))
    ends, found = endings(lm, list(new))
    unknown = embedded(lm, np.array([lm.encoder.unknown]))[0]
    print(f"{size:,} bytes, {len(tokens):,} tokens, {len(new):,} new words, {found:,} with endings")
    for share in (0.0, 0.5, 1.0):
        vectors = (1 - share) * unknown + share * np.where(np.isnan(ends), unknown, ends)
        scores = score(lm, ids, logs, vectors.astype(np.float32))
        after = np.flatnonzero(ids[:-1] >= known)
        print(
            f"ending's share {share}: {-scores.sum() / np.log(2) / size:.5f} bits per byte; "
            f"{-scores[after].mean() / np.log(2):.4f} bits per token after a new word"
        )


def embedded(lm: LM, ids: NDArray[Any]) -> NDArray[np.float32]:
    engine: Any = lm.engine
    return np.asarray(engine._network._embedding(ids))


def endings(lm: LM, words: list[str]) -> tuple[NDArray[np.float64], int]:
    """Return the mean embedding of words with the same ending, NaN where there are too few."""
    groups: dict[tuple[bool, str], list[int]] = defaultdict(list)
    for number, word in enumerate(lm.vocabulary):
        marked, look = unmark(word)
        for length in range(SHORTEST, min(LONGEST, len(look)) + 1):
            groups[marked, look[-length:]].append(number)
    result = np.full((len(words), lm.shape.width), np.nan)
    for row, word in enumerate(words):
        marked, look = unmark(word)
        for length in range(min(LONGEST, len(look)), SHORTEST - 1, -1):
            group = groups.get((marked, look[-length:]), [])
            if len(group) >= LEAST:
                result[row] = embedded(lm, np.array(group)).mean(axis=0)
                break
    return result, int((~np.isnan(result[:, 0])).sum())


def score(
    lm: LM, ids: NDArray[Any], logs: list[float], vectors: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Score a text whose new words enter the network as these vectors."""
    engine: Any = lm.engine
    network: Any = engine._network
    known, place = len(lm.vocabulary), 0

    def advance(read: NDArray[Any], past: Past) -> Any:
        nonlocal place
        own = ids[place : place + len(read)]
        place += len(read)
        x = network._embedding(read)
        x[own >= known] = vectors[own[own >= known] - known]
        keys, values = [], []
        for block, key, value in zip(network._blocks, past.keys, past.values, strict=True):
            x, key, value = block(x, key, value)
            keys.append(key)
            values.append(value)
        return quantize(x, network._hidden), Past(keys=tuple(keys), values=tuple(values))

    engine.advance = advance
    try:
        return np.asarray(engine.score_open(ids, logs), np.float64)
    finally:
        del engine.advance


if __name__ == "__main__":
    main()
