"""What `short_texts.py` compares with: a trigram counter with backoff, and KenLM's n-grams.

A text that they read gives log-probabilities of all words, (V), as a session of an engine does.
"""

import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Context = tuple[int, ...]

DISCOUNT = 0.75  # what the trigram counter takes off each count for words that it has not seen


class Model(Protocol):
    """What both n-gram models answer."""

    def log_probabilities(self, read: Context) -> Floats:
        """Return the log-probabilities of all words after those that were read."""


class Trigram:
    """Counts of words after two words, after one and after none; rarer ones back off."""

    def __init__(self, ids: Sequence[int], vocabulary: int) -> None:
        self._alone = np.bincount(ids, minlength=vocabulary) / len(ids)
        after: defaultdict[Context, Counter[int]] = defaultdict(Counter)
        for first, second, third in zip(ids, ids[1:], ids[2:], strict=False):
            after[first, second][third] += 1
            after[(second,)][third] += 1
        self._after = {
            context: (np.array(list(c)), np.array(list(c.values()))) for context, c in after.items()
        }

    def start(self) -> "Text":
        """Begin a text."""
        return Text(self, 2)

    def log_probabilities(self, read: Context) -> Floats:
        """Return the log-probabilities of all words after those that were read."""
        chances = self._alone
        for context in (read[1:], read):
            if len(context) and context in self._after:
                words, counts = self._after[context]
                chances = chances * (DISCOUNT * len(words) / counts.sum())
                chances[words] += (counts - DISCOUNT) / counts.sum()
        return np.log(chances).astype(np.float32)


class KenLM:
    """An n-gram model that KenLM's `lmplz` estimated, line by line, read from its ARPA file."""

    def __init__(self, arpa: Path, vocabulary: int, line_end: int) -> None:
        # In the file a word is its id; KenLM's marks for a line's begin and end are ours for a line
        # end, read and predicted. Of its `<unk>`, which no id is, nothing is ever asked.
        ids = {str(n): n for n in range(vocabulary)} | {"<s>": line_end, "</s>": line_end}
        self._line_end, self.order = line_end, 1
        self._alone = np.full(vocabulary, -np.inf)
        self._back: dict[Context, float] = {}
        after: defaultdict[Context, dict[int, float]] = defaultdict(dict)
        with arpa.open() as lines:
            for line in lines:
                chance, *rest = line.rstrip("\n").split("\t")
                if not rest or "<unk>" in rest[0]:
                    continue
                names = rest[0].split(" ")
                words = tuple(ids[name] for name in names)
                self.order = max(self.order, len(words))
                if len(rest) > 1 and names[-1] != "</s>":
                    self._back[words] = float(rest[1])
                if names[-1] == "<s>":
                    continue
                if len(words) == 1:
                    self._alone[words[0]] = float(chance)
                else:
                    after[words[:-1]][words[-1]] = float(chance)
        self._after = {
            context: (np.array(list(c)), np.array(list(c.values()))) for context, c in after.items()
        }

    @classmethod
    def estimated(
        cls, lmplz: str, ids: Iterable[int], vocabulary: int, line_end: int, folder: Path
    ) -> "KenLM":
        """Let `lmplz` estimate a 5-gram model with modified Kneser-Ney smoothing."""
        text = " ".join("\n" if n == line_end else str(n) for n in ids)
        arpa = folder / "5-gram.arpa"
        subprocess.run(
            [lmplz, "-o", "5", "-S", "500M", "-T", str(folder), "--arpa", str(arpa)],
            input=text.replace(" \n ", "\n").encode(),
            capture_output=True,
            check=True,
        )
        return cls(arpa, vocabulary, line_end)

    def start(self) -> "Text":
        """Begin a text."""
        return Text(self, self.order - 1, fresh_after=self._line_end)

    def log_probabilities(self, read: Context) -> Floats:
        """Return the log-probabilities of all words after those that were read."""
        logs = self._alone
        for first in range(len(read) - 1, -1, -1):
            context = read[first:]
            logs = logs + self._back.get(context, 0.0)
            if context in self._after:
                words, known = self._after[context]
                logs[words] = known
        natural: Floats = (logs * np.log(10)).astype(np.float32)
        return natural


class Text:
    """A text that an n-gram model reads: the last words."""

    def __init__(self, model: Model, kept: int, fresh_after: int | None = None) -> None:
        self._model, self._kept, self._fresh_after = model, kept, fresh_after
        self._read: Context = ()

    def feed(self, token: int) -> None:
        """Read the next word; at the beginning of a line the context is dropped."""
        before = () if token == self._fresh_after else self._read
        self._read = (*before, token)[-self._kept :]

    def fork(self) -> "Text":
        """Give a second text that has read the same."""
        twin = Text(self._model, self._kept, self._fresh_after)
        twin._read = self._read
        return twin

    def log_distribution(self, out: Floats | None = None) -> Floats:
        """Return the log-probabilities of all words."""
        found = self._model.log_probabilities(self._read)
        if out is None:
            return found
        out[:] = found
        return out
