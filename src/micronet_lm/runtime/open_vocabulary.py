"""Bits per byte of a text: its words by the model, and unknown ones letter by letter.

A word outside the vocabulary has the probability P(`<unk>`) · P_spelling(word). So every text has a
probability, which can be compared with that of any other model of text or compressor. Once it was
read, the cache votes for it, too, as for any other word. A perplexity
per token with `<unk>` cannot: it asks only whether a word is unknown, not which one it is.

The text begins after a line's end; all its tokens are predicted, the first one, too. Spaces are
part of the tokens and of their marks, line ends are the token `<eos>`, so every character counts
once. White space that a tokenizer does not keep is neither predicted nor counted.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.errors import InferenceError

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM


@dataclass(frozen=True, kw_only=True)
class OpenScore:
    """How well a model predicts the characters of a text."""

    log_probability: float
    """Natural logarithm of the probability of the whole text."""
    tokens: int
    spelled: int
    """Number of tokens that are not in the vocabulary."""
    new: int
    """Number of different words among them."""
    characters: int
    """Characters of the text as its tokens tell it."""
    bytes: int
    """Bytes of these characters in UTF-8."""

    @property
    def bits(self) -> float:
        """Bits that the whole text takes."""
        return -self.log_probability / math.log(2)

    @property
    def bits_per_byte(self) -> float:
        """Bits per byte of the text."""
        return self.bits / self.bytes

    @property
    def bits_per_character(self) -> float:
        """Bits per character of the text."""
        return self.bits / self.characters

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a JSON object."""
        per = {"bits_per_byte": self.bits_per_byte, "bits_per_character": self.bits_per_character}
        return {**asdict(self), "bits": self.bits, **per}


def open_score(lm: "LM", text: str, threads: int = 1, *, learn: bool = True) -> OpenScore:
    """Score every character of a text once; without `learn` the cache takes new words for one."""
    tokens = lm.encoder.tokens(text)
    shown = lm.join(tokens)
    size = len(shown.encode())
    if not size:
        raise InferenceError("a text without words and line ends has no bits per byte: give some")
    ids = lm.encoder.ids_of(tokens)
    places = np.flatnonzero(ids == lm.encoder.unknown).tolist()
    new = dict.fromkeys(tokens[place] for place in places)
    logs = spell(lm, list(new))
    # What is written <unk> is no word of its own: it stays unknown, and is spelled each time.
    numbers = {word: len(lm.vocabulary) + n for n, word in enumerate(new)}
    numbers.update({UNK: lm.encoder.unknown})
    if learn:
        for place in places:
            ids[place] = numbers[tokens[place]]
        literal = tokens.count(UNK) * logs[list(new).index(UNK)] if UNK in new else 0.0
    else:
        literal = math.fsum(logs[list(new).index(tokens[place])] for place in places)
    text_ids = np.concatenate([[lm.encoder.line_end], ids])
    scores = lm.engine.score_open(text_ids, logs if learn else [], threads)
    return OpenScore(
        log_probability=math.fsum(scores.tolist()) + literal,
        tokens=len(tokens),
        spelled=len(places),
        new=len(new),
        characters=len(shown),
        bytes=size,
    )


def spell(lm: "LM", words: Sequence[str]) -> list[float]:
    """Return log P_spelling of words outside the vocabulary."""
    logs = []
    for word in words:
        found = lm.engine.spelling(word)
        if found is None:
            raise InferenceError(
                f"the model does not know the word {word!r} and has no spelling model: pack it "
                f"with the section spelling in its recipe, or score texts without {UNK}"
            )
        logs.append(found)
    return logs
