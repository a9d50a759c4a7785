"""The vocabulary: words by decreasing frequency, so that common words have small ids."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from micronet_lm.errors import CorpusError, UsageError
from micronet_lm.files import open_regular, replacing

EOS = "<eos>"  # ends every line
UNK = "<unk>"  # stands for every word outside the vocabulary

Ids: TypeAlias = NDArray[np.unsignedinteger[Any]]


class _Index(dict[str, int]):
    """Ids of words; a word outside the vocabulary has the id of `<unk>`."""

    unknown: int

    def __missing__(self, word: str) -> int:
        return self.unknown


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """Words with their counts in the train split, most frequent first, ties in text order.

    `<unk>` and `<eos>` are ordinary entries and always present.
    """

    words: tuple[str, ...]
    """Every word, at the index that is its id."""
    counts: tuple[int, ...]
    """Number of occurrences of each word in the train split; `<unk>` counts all dropped words."""
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
            raise CorpusError(f"the vocabulary contains {twice!r} twice: words must be distinct")
        for special in (UNK, EOS):
            if special not in index:
                raise CorpusError(f"the vocabulary lacks {special!r}: it must be one of the words")
        index.unknown = index[UNK]
        object.__setattr__(self, "_index", index)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], *, min_count: int = 1, max_vocabulary: int | None = None
    ) -> "Vocabulary":
        """Keep words that occur at least `min_count` times, `max_vocabulary` entries at most.

        The counts of dropped words are added to that of `<unk>`, which is sorted by the sum.
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
        """Read a file that `save` wrote; refuse any other."""
        with open_regular(path) as file:
            data = file.read()
        try:
            text = data.decode("utf-8")
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
        """Write one line per word: its count, a tab, the word."""
        with replacing(path) as temporary:
            temporary.write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the contents of the file that `save` writes."""
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
        """Return the id of a word, or that of `<unk>` when the word is not in the vocabulary."""
        return self._index[word]

    def word(self, index: int) -> str:
        """Return the word of an id."""
        return self.decode([index])[0]

    def encode(self, tokens: Iterable[str]) -> Ids:
        """Convert tokens to ids; unknown words become `<unk>`."""
        return np.fromiter(map(self._index.__getitem__, tokens), dtype=self.dtype)

    def decode(self, ids: ArrayLike) -> list[str]:
        """Convert ids to words; an id outside the vocabulary is refused."""
        array = np.asarray(ids).reshape(-1)
        if array.size == 0:
            return []
        if not np.issubdtype(array.dtype, np.integer):
            raise CorpusError(f"token ids must be integers, got {array.dtype}: convert them first")
        for extreme in (int(array.min()), int(array.max())):
            if not 0 <= extreme < self.size:
                raise CorpusError(
                    f"token id {extreme} is outside the vocabulary of {self.size} words: "
                    f"choose ids from 0 to {self.size - 1}"
                )
        return list(map(self.words.__getitem__, array.tolist()))


def check_limits(min_count: int, max_vocabulary: int | None) -> None:
    """Refuse limits that would leave no usable vocabulary."""
    if min_count < 1:
        raise UsageError(f"min_count must be at least 1, got {min_count}: choose a larger one")
    if max_vocabulary is not None and max_vocabulary < 3:
        raise UsageError(
            f"max_vocabulary must be at least 3 ({UNK}, {EOS} and one word), got {max_vocabulary}: "
            "choose a larger one"
        )


def _rank(item: tuple[str, int]) -> tuple[int, str]:
    """Return the sort key: by decreasing count, then by word, so that ids are deterministic."""
    return -item[1], item[0]


def _check_words(words: tuple[str, ...]) -> None:
    """Refuse words that cannot be stored as a line of the file."""
    text = "\n".join(words)
    if "" in words or text.count("\n") > len(words) - 1:
        bad = next(word for word in words if not word or "\n" in word)
        raise CorpusError(f"{bad!r} cannot be a word: words must not be empty or contain a newline")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"{text[error.start]!r} cannot be part of a word: it cannot be encoded as UTF-8"
        ) from error


def _damaged(path: Path, why: str) -> CorpusError:
    return CorpusError(
        f"the vocabulary {path} is damaged ({why}): build the corpus again with --force"
    )
