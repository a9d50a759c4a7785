"""Convert text to ids and back, with an engine's vocabulary."""

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from micronet_lm.corpus.memo import Memo
from micronet_lm.corpus.tokenizers import Tokenizer, tokenizer
from micronet_lm.corpus.vocabulary import EOS, UNK
from micronet_lm.errors import ArtifactError, InferenceError
from micronet_lm.runtime.engine import Engine, Session
from micronet_lm.runtime.reading import Reader


class Words(Sequence[str]):
    """The vocabulary; a word's index is its id."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __len__(self) -> int:
        return self._engine.vocabulary_size

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._engine.find(word) is not None

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [self._engine.word(number) for number in range(len(self))[place]]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self._engine.word(place % len(self))

    def __iter__(self) -> Iterator[str]:
        return map(self._engine.word, range(len(self)))

    def __repr__(self) -> str:
        return f"Words({len(self)})"


class Encoder:
    """Converter from text to ids with the corpus's tokenizer; unknown words become `<unk>`."""

    def __init__(self, engine: Engine, tokenizer_name: str, *, learns: bool = False) -> None:
        self._engine = engine
        self.learns = learns
        """Whether sessions give unknown words ids of their own: the model has a cache for them."""
        self.tokenizer: Tokenizer = tokenizer(tokenizer_name)
        self._ids = _Ids(engine)
        self.unknown, self.line_end = self._ids.unknown, self._ids[EOS]

    def ids(self, text: str) -> NDArray[np.int64]:
        """Return the ids of a text; no `<eos>` is added at the end."""
        return self.ids_of(self.tokens(text))

    def tokens(self, text: str) -> list[str]:
        """Split a text as it was typed: white space around it does not count."""
        reader = Reader(self.tokenizer)
        return [*reader.take(text), *reader.close()]

    def ids_of(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the ids of words, that of `<unk>` for unknown ones."""
        return np.fromiter(map(self._ids.__getitem__, words), np.int64, len(words))

    def ids_in(self, session: Session, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the ids of words that a session reads next; it learns those that it lacks."""
        ids = self.ids_of(words)
        if self.learns:
            for place in np.flatnonzero(ids == self.unknown).tolist():
                if words[place] != UNK:
                    ids[place] = session.add(words[place])
        return ids

    def id_in(self, session: Session, word: str) -> int:
        """Return the id of a word in a session, that of `<unk>` if it has none."""
        found = session.find(word)
        return self.unknown if found is None else found

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that become `<unk>`, in order, without `<unk>` itself."""
        words = self.tokens(text)
        places = np.flatnonzero(self.ids_of(words) == self.unknown)
        return [word for word in map(words.__getitem__, places.tolist()) if word != UNK]

    def known(self, word: str) -> int:
        """Return the id of a word that must be in the vocabulary."""
        found = self._engine.find(word)
        if found is None:
            raise InferenceError(
                f"the word {word!r} is not in the vocabulary of {self._engine.vocabulary_size:,} "
                f"words: ask for {UNK!r}, which stands for all such words"
            )
        return found


class _Ids(Memo[int]):
    """Memo of word ids, so that the engine is asked once per word."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._find = engine.find
        ends = self._find(EOS)
        unknown = self._find(UNK)
        if unknown is None or ends is None:
            raise ArtifactError(
                f"the model's vocabulary lacks {UNK if unknown is None else EOS!r}, so it reads no "
                "text: pack a model of a corpus that 'micronet corpus build' made"
            )
        self.unknown = unknown

    def __missing__(self, word: str) -> int:
        found = self._find(word)
        return self.remember(word, self.unknown if found is None else found)
