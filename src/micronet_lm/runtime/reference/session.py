"""A text that the NumPy engine reads token by token: chunks of one, with the state between."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from micronet_lm.checksum import SUM_BYTES, checksum_bytes
from micronet_lm.corpus.vocabulary import UNK
from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Floats, Ids, Influence
from micronet_lm.runtime.questions import (
    check_added,
    check_room,
    check_text,
    check_token,
    choose,
    largest_k,
)
from micronet_lm.runtime.reference.arithmetic import Numbers
from micronet_lm.runtime.reference.network import Past
from micronet_lm.runtime.reference.recall import (
    Memory,
    Recalled,
    Recollected,
    recalled_log_probabilities,
    votes_of_all,
)

if TYPE_CHECKING:
    from micronet_lm.runtime.reference.engine import NumpyEngine

VERSION = 1
"""Version of saved sessions; any other is refused."""


_DROPPED = "\n"
"""What names of forgotten words begin with: no word has a line feed."""


class NumpySession:
    """See `runtime.engine.Session`. Attributes are replaced, never changed in place."""

    def __init__(self, engine: "NumpyEngine") -> None:
        self._engine = engine
        self._tokens = 0
        self._past = Past.empty(engine.shape)
        self._memory = Memory.empty(engine.shape.width)
        self._read: tuple[int, ...] = ()  # the last words, for the table of n-grams
        self._hidden: Numbers | None = None  # (1, D) of the last token
        self._answer: Floats | None = None  # (V + words of the session), at the first question
        self._added: dict[str, int] = {}  # words that the vocabulary lacks, and their ids from V on
        self._recalled: Recalled | None = None

    @property
    def tokens(self) -> int:
        """Number of tokens fed."""
        return self._tokens

    def feed(self, token: int) -> None:
        """Read the next token."""
        self.feed_many([token])

    def feed_many(self, tokens: Ids | Sequence[int]) -> None:
        """Read several tokens."""
        ids = check_text(tokens, self._size, least=0)
        if not len(ids):
            return
        hidden, past = self._engine.advance(self._engine.read_as(ids), self._past)
        states = hidden.floats()  # (T, D)
        if self._engine.cache is not None:
            before = states[:-1]
            if self._hidden is not None:
                before = np.concatenate([self._hidden.floats(), before])
            following = ids[len(ids) - len(before) :]
            self._memory = self._memory.after(before, following, self._engine.cache.size)
        last = Numbers(numbers=hidden.numbers[-1:].copy(), scale=hidden.scale)
        self._past, self._hidden, self._answer = past, last, None
        self._tokens += len(ids)
        if kept := self._engine.kept_words:
            read = self._engine.read_as(ids[-kept:]).tolist()
            self._read = (*self._read, *read)[-kept:]

    @property
    def added(self) -> int:
        """Number of words that were added to this session."""
        return len(self._added)

    def add(self, word: str) -> int:
        """Return the id of a word; one that the vocabulary lacks gets an id of this session."""
        found = self.find(word)
        if found is not None:
            return found
        check_added(word, unknown=self._engine.find(UNK), held=len(self._added))
        number = self._size
        self._added, self._answer = {**self._added, word: number}, None
        return number

    def word(self, token: int) -> str:
        """Return the word of an id, of the vocabulary or of this session."""
        number = check_token(token, self._size) - self._engine.vocabulary_size
        return self._engine.word(token) if number < 0 else _name(list(self._added)[number])

    def find(self, word: str) -> int | None:
        """Return the id of a word of the vocabulary or of this session, None for others."""
        known = self._engine.find(word)
        return self._added.get(word) if known is None else known

    def forget(self, word: str) -> None:
        """Take a word out of the cache and of the session's words."""
        number, unknown = self.find(word), self._engine.find(UNK)
        if number is None or unknown is None or number == unknown:
            return
        words = np.where(self._memory.words == number, unknown, self._memory.words)
        self._memory = Memory(states=self._memory.states, words=words)
        # An id that was given stays: its name becomes one that no word has.
        self._added = {
            f"{_DROPPED}{own}" if own == number else name: own for name, own in self._added.items()
        }
        self._answer = None

    def remembered(self, count: int) -> tuple[Floats, Ids]:
        """Return the last states of the cache and the words that followed them."""
        first = len(self._memory.words) - min(max(0, count), len(self._memory.words))
        return self._memory.states[first:].copy(), self._memory.words[first:].copy()

    def recall(self, recollected: Recollected | None) -> None:
        """Mix recollections into all predictions; None ends it."""
        self._answer = self._recalled = None
        if recollected is None:
            return
        own, known = recollected.recollections, self._engine.vocabulary_size
        ids = np.array([self.add(word) for word in own.words], np.int64)
        following = own.following.astype(np.int64)
        new = following >= known
        following[new] = ids[following[new] - known]
        self._recalled = Recalled(recollected=recollected, following=following, words=ids)

    @property
    def _size(self) -> int:
        return self._engine.vocabulary_size + len(self._added)

    def log_probability(self, token: int) -> float:
        """Return the log-probability that this token comes next."""
        return float(self._ask()[check_token(token, self._size)])

    def log_distribution(self, out: Floats | None = None) -> Floats:
        """Return the log-probabilities of all words."""
        own = self._ask()[: self._engine.vocabulary_size]
        if out is None:
            return own.copy()
        check_room(out)
        if out.shape != own.shape:
            raise InferenceError(
                f"out must be float32 of shape [{len(own)}], got {out.dtype} {list(out.shape)}"
            )
        out[:] = own
        return out

    def top_k(self, k: int) -> tuple[Ids, Floats]:
        """Return the k likeliest words."""
        return self._best(np.arange(self._size), k)

    def complete(self, prefix: str, k: int) -> tuple[Ids, Floats]:
        """Return the k likeliest words that begin with a prefix."""
        known = self._engine.beginning_with(prefix)
        if not self._added:
            return self._best(known, k)
        more = [number for word, number in self._added.items() if word.startswith(prefix)]
        return self._best(np.concatenate([known, np.array(more, np.int64)]), k)

    def sample(self, u: float, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> int:
        """Choose the next word by a number in [0, 1)."""
        return choose(self._ask(), u, temperature, top_k, top_p)

    def influence(self, token: int, k: int) -> Influence:
        """Return what the cache does to a token's probability, and its k largest votes."""
        check_token(token, self._size)
        if k < 0:
            raise InferenceError(f"k must be 0 or more, got {k}")
        if self._hidden is None:
            raise InferenceError("no token was fed yet: feed one before asking for the next")
        alone = -np.inf
        if token < self._engine.vocabulary_size:
            nothing = Memory.empty(self._engine.shape.width)
            alone = self._engine.log_distribution(self._hidden, nothing, self._read)[token]
        held, cache = len(self._memory.words), self._engine.cache
        if cache is None or not held:
            return Influence(float(alone), 0.0, 0.0, ())
        votes = votes_of_all(cache, self._memory, self._hidden.floats()[0])
        best = np.argsort(-votes, kind="stable")[:k]
        first = self._tokens - held  # the number of the word that followed the oldest state
        return Influence(
            without_cache=float(alone),
            share=float(cache.share(held)),
            cache=float(votes[self._memory.words == token].sum()),
            voters=tuple((first + int(one), float(votes[one])) for one in best),
        )

    def fork(self) -> "NumpySession":
        """Return an independent copy of this session."""
        twin = NumpySession(self._engine)
        twin._tokens, twin._past, twin._memory = self._tokens, self._past, self._memory
        twin._hidden, twin._answer, twin._added = self._hidden, self._answer, self._added
        twin._read, twin._recalled = self._read, self._recalled
        return twin

    def save(self) -> bytes:
        """Return the session as bytes."""
        added, words = self._saved_words()
        tensors: dict[str, NDArray[Any]] = {
            "version": np.array([VERSION], np.int64),
            "model": np.frombuffer(self._engine.fingerprint, np.uint8),
            "tokens": np.array([self._tokens], np.int64),
            "memory.states": self._memory.states,
            "memory.words": words,
        }
        for number, (keys, values) in enumerate(
            zip(self._past.keys, self._past.values, strict=True)
        ):
            tensors[f"keys.{number}"], tensors[f"values.{number}"] = keys, values
        if self._hidden is not None:
            tensors["hidden"] = self._hidden.numbers
        if added:
            tensors["added"] = np.frombuffer("\n".join(added).encode(), np.uint8)
        if self._engine.kept_words:
            tensors["read"] = np.array(self._read, np.int64)
        plain = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        body = bytes(save(plain))
        return body + checksum_bytes(body)

    @classmethod
    def restored(cls, engine: "NumpyEngine", saved: bytes) -> "NumpySession":
        """Return the session that `save` wrote to these bytes; refuse anything else."""
        # What earlier versions saved ends without a checksum. A damaged one is 8 bytes too many.
        summed = saved[-SUM_BYTES:] == checksum_bytes(saved[:-SUM_BYTES])
        body = saved[:-SUM_BYTES] if summed else saved
        try:
            tensors = load(body)
            _check(tensors, engine)
        except (SafetensorError, KeyError, TypeError, ValueError, EOFError) as error:
            raise InferenceError(
                f"these {len(saved)} bytes are not a saved session of this model ({error}): save "
                "it again with the same engine and file"
            ) from None
        session, layers = cls(engine), range(engine.shape.layers)
        session._tokens = int(tensors["tokens"][0])
        session._past = Past(
            keys=tuple(tensors[f"keys.{n}"] for n in layers),
            values=tuple(tensors[f"values.{n}"] for n in layers),
        )
        session._added = {
            word: engine.vocabulary_size + n for n, word in enumerate(_added(tensors))
        }
        session._memory = Memory(states=tensors["memory.states"], words=tensors["memory.words"])
        if "hidden" in tensors:
            session._hidden = Numbers(numbers=tensors["hidden"], scale=engine.hidden_scale)
        if engine.kept_words:
            session._read = tuple(tensors["read"].tolist())
        return session

    def _saved_words(self) -> tuple[list[str], NDArray[np.int64]]:
        """Return the added words that are saved, and the cache's words by their new ids.

        A session that recalls a person's texts, or forgot words, saves only what its cache has.
        """
        names, words, known = list(self._added), self._memory.words, self._engine.vocabulary_size
        if self._recalled is None and not any(name.startswith(_DROPPED) for name in names):
            return names, words
        used = np.unique(words[words >= known])
        numbers = np.where(words < known, words, known + np.searchsorted(used, words))
        return [names[number - known] for number in used.tolist()], numbers

    def _ask(self) -> Floats:
        if self._hidden is None:
            raise InferenceError("no token was fed yet: feed one before asking for the next")
        if self._answer is None:
            own = self._engine.log_distribution(self._hidden, self._memory, self._read)
            if self._added:
                more = np.full(len(self._added), -np.inf, np.float32)
                if self._engine.cache is not None:
                    more = recalled_log_probabilities(
                        self._engine.cache,
                        self._memory,
                        self._hidden.floats()[0],
                        self._engine.vocabulary_size,
                        len(self._added),
                    )
                own = np.concatenate([own, more])
            if self._recalled is not None and self._engine.cache is not None:
                hidden = self._hidden.floats()[0]
                own = self._recalled.mixed(self._engine.cache.theta, hidden, own)
            self._answer = own
        return self._answer

    def _best(self, among: NDArray[np.int64], k: int) -> tuple[Ids, Floats]:
        own = self._ask()[among]
        best = largest_k(own, k)
        best = best[np.isfinite(own[best])]  # words of the session without votes
        return among[best], own[best]


def _name(name: str) -> str:
    """Return an added word; nothing for one that was forgotten."""
    return "" if name.startswith(_DROPPED) else name


def _added(tensors: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    """Return the words of a saved session that its vocabulary lacks."""
    if "added" not in tensors:
        return ()
    words = tuple(tensors["added"].tobytes().decode("utf-8").split("\n"))
    if "" in words:
        raise ValueError("an empty word")
    return words


def _check(tensors: dict[str, NDArray[Any]], engine: "NumpyEngine") -> None:
    """Refuse tensors that a session of this engine cannot have."""
    shape, fed = engine.shape, "hidden" in tensors

    def take(name: str, kind: type[Any], *sizes: int) -> NDArray[Any]:
        tensor = tensors[name]
        if tensor.dtype != kind or tensor.shape != sizes:
            raise ValueError(f"{name} is {tensor.dtype} {list(tensor.shape)}")
        if kind is np.float32 and not np.isfinite(tensor).all():
            raise ValueError(f"{name} is not finite")
        return tensor

    if take("version", np.int64, 1)[0] != VERSION:
        raise ValueError(f"version {tensors['version'][0]} instead of {VERSION}")
    if take("model", np.uint8, 32).tobytes() != engine.fingerprint:
        raise ValueError("it belongs to another model")
    tokens = int(take("tokens", np.int64, 1)[0])
    if tokens < 0 or fed != (tokens > 0):
        raise ValueError(f"{tokens} tokens")
    past = min(tokens, shape.context - 1)
    for number in range(shape.layers):
        take(f"keys.{number}", np.float32, past, shape.heads, shape.key_width)
        take(f"values.{number}", np.float32, past, shape.heads, shape.value_width)
    held = min(max(tokens - 1, 0), engine.cache.size) if engine.cache else 0
    take("memory.states", np.float32, held, shape.width)
    words = take("memory.words", np.int64, held)
    added = _added(tensors)
    if len(set(added)) < len(added) or any(engine.find(word) is not None for word in added):
        raise ValueError("its words are not new")
    if engine.kept_words:
        read = take("read", np.int64, min(tokens, engine.kept_words))
        words = np.concatenate([words, read])
    size = engine.vocabulary_size + len(added)
    if len(words) and not 0 <= int(words.min()) <= int(words.max()) < size:
        raise ValueError("words out of range")
    if fed:
        take("hidden", np.float32, 1, shape.width)
    if len(tensors) != 5 + 2 * shape.layers + fed + bool(added) + bool(engine.kept_words):
        raise ValueError("it has unknown tensors")
