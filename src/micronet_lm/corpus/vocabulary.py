"""The vocabulary: words by decreasing frequency, so that an id tells how common a word is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from micronet_lm.errors import CorpusError, UsageError
from micronet_lm.files import replacing

EOS = "<eos>"  # ends every line
UNK = "<unk>"  # stands for every word outside the vocabulary

Ids: TypeAlias = NDArray[np.unsignedinteger[Any]]


class _Index(dict[str, int]):
    """Ids of words; a word that is not there has the id of `<unk>`."""

    unknown: int

    def __missing__(self, word: str) -> int:
        return self.unknown


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """Words with their counts in the train split, most frequent first, ties in text order.

    `<unk>` and `<eos>` are entries like any other and always there.
    """

    words: tuple[str, ...]
    """Every word; its place is its id."""
    counts: tuple[int, ...]
    """How often each word occurs in the train split, `<unk>` standing for all dropped words."""
    _index: _Index = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _check_words(self.words)
        if len(self.counts) != len(self.words):
            raise CorpusError(
                f"the vocabulary has {len(self.words)} words but {len(self.counts)} counts: "
                "give one count for each word"
            )
        index = _Index(zip(self.words, range(len(self.words)), strict=True))
        if len(index) != len(self.words):
            twice = next(word for at, word in enumerate(self.words) if index[word] != at)
            raise CorpusError(f"the vocabulary holds {twice!r} twice: words must be distinct")
        for special in (UNK, EOS):
            if special not in index:
                raise CorpusError(f"the vocabulary lacks {special!r}: it must be one of the words")
        index.unknown = index[UNK]
        object.__setattr__(self, "_index", index)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], *, min_count: int = 1, max_vocabulary: int | None = None
    ) -> "Vocabulary":
        """Keep the words that occur `min_count` times, at most `max_vocabulary` entries in all.

        The counts of the words left out are added to that of `<unk>`, which takes its place in
        the order by that sum.
        """
        check_limits(min_count, max_vocabulary)
        words = {word: count for word, count in counts.items() if word not in (UNK, EOS)}
        dropped = 0
        if min_count > 1:
            kept = {word: count for word, count in words.items() if count >= min_count}
            dropped += sum(words.values()) - sum(kept.values())
            words = kept
        if max_vocabulary is not None and len(words) > max_vocabulary - 2:
            kept = dict(sorted(words.items(), key=_rank)[: max_vocabulary - 2])
            dropped += sum(words.values()) - sum(kept.values())
            words = kept
        words[UNK] = counts.get(UNK, 0) + dropped
        words[EOS] = counts.get(EOS, 0)
        ranked = sorted(words.items(), key=_rank)
        return cls(tuple(word for word, _ in ranked), tuple(count for _, count in ranked))

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Read what `save` wrote, and nothing else."""
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise _damaged(path, f"byte {error.start} is not UTF-8") from error
        if not text.endswith("\n"):
            raise _damaged(path, "its last line is cut off")
        words: list[str] = []
        counts: list[int] = []
        for number, line in enumerate(text[:-1].split("\n"), start=1):
            count, tab, word = line.partition("\t")
            if not tab or not (count.isascii() and count.isdigit()):
                raise _damaged(path, f"line {number} is not a count, a tab and a word")
            words.append(word)
            counts.append(int(count))
        if any(a < b for a, b in pairwise(counts)):
            raise _damaged(path, "its counts do not decrease")
        try:
            return cls(tuple(words), tuple(counts))
        except CorpusError as error:
            raise _damaged(path, str(error)) from error

    def save(self, path: Path) -> None:
        """Write one line a word: its count, a tab, the word."""
        with replacing(path) as temporary:
            temporary.write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Give the contents of the file that `save` writes."""
        lines = zip(self.counts, self.words, strict=True)
        return "".join(f"{count}\t{word}\n" for count, word in lines).encode("utf-8")

    @property
    def size(self) -> int:
        """The number of entries, `<unk>` and `<eos>` included."""
        return len(self.words)

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The smallest unsigned integer type that holds every id."""
        return np.dtype(np.min_scalar_type(self.size - 1))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def __repr__(self) -> str:
        return f"Vocabulary({self.size} words)"

    def id(self, word: str) -> int:
        """Give the id of a word, that of `<unk>` when the word is not in the vocabulary."""
        return self._index[word]

    def word(self, index: int) -> str:
        """Give the word of an id."""
        return self.decode([index])[0]

    def encode(self, tokens: Iterable[str]) -> Ids:
        """Turn tokens into ids; unknown words become `<unk>`."""
        return np.fromiter(map(self._index.__getitem__, tokens), dtype=self.dtype)

    def decode(self, ids: ArrayLike) -> list[str]:
        """Turn ids into words; an id outside the vocabulary is refused."""
        array = np.asarray(ids).reshape(-1)
        if array.size == 0:
            return []
        if not np.issubdtype(array.dtype, np.integer):
            raise CorpusError(f"token ids are whole numbers, not {array.dtype}: convert them first")
        for extreme in (int(array.min()), int(array.max())):
            if not 0 <= extreme < self.size:
                raise CorpusError(
                    f"token id {extreme} is outside the vocabulary of {self.size} words: "
                    f"ids run from 0 to {self.size - 1}"
                )
        return list(map(self.words.__getitem__, array.tolist()))


def check_limits(min_count: int, max_vocabulary: int | None) -> None:
    """Refuse limits that leave no vocabulary to speak of."""
    if min_count < 1:
        raise UsageError(
            f"min_count is {min_count}, but a word occurs at least once: give 1 or more"
        )
    if max_vocabulary is not None and max_vocabulary < 3:
        raise UsageError(
            f"max_vocabulary is {max_vocabulary}, but {UNK}, {EOS} and one word need 3: "
            "give 3 or more"
        )


def _rank(item: tuple[str, int]) -> tuple[int, str]:
    """Sort by decreasing count, then by text: the same text gives the same ids, always."""
    return -item[1], item[0]


def _check_words(words: tuple[str, ...]) -> None:
    """Refuse words that a line of the file could not hold."""
    text = "\n".join(words)
    if "" in words or text.count("\n") > len(words) - 1:
        bad = next(word for word in words if not word or "\n" in word)
        raise CorpusError(f"{bad!r} cannot be a word: words are not empty and hold no line end")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"{text[error.start]!r} cannot be part of a word: it has no UTF-8 form"
        ) from error


def _damaged(path: Path, why: str) -> CorpusError:
    return CorpusError(
        f"the vocabulary {path} is damaged ({why}): build the corpus again with --force"
    )
