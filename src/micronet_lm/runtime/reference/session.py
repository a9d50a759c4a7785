"""A text that the NumPy engine reads token by token: chunks of one, with the state between."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from micronet_lm.errors import InferenceError
from micronet_lm.runtime.engine import Floats, Ids
from micronet_lm.runtime.questions import check_text, check_token, choose, largest_k
from micronet_lm.runtime.reference.arithmetic import Numbers
from micronet_lm.runtime.reference.network import Past
from micronet_lm.runtime.reference.recall import Memory

if TYPE_CHECKING:
    from micronet_lm.runtime.reference.engine import NumpyEngine

VERSION = 1
"""Version of saved sessions; any other is refused."""


class NumpySession:
    """See `runtime.engine.Session`. Attributes are replaced, never changed in place."""

    def __init__(self, engine: "NumpyEngine") -> None:
        self._engine = engine
        self._tokens = 0
        self._past = Past.empty(engine.shape)
        self._memory = Memory.empty(engine.shape.width)
        self._hidden: Numbers | None = None  # (1, D) of the last token
        self._answer: Floats | None = None  # (V), computed at the first question

    @property
    def tokens(self) -> int:
        """Number of tokens fed."""
        return self._tokens

    def feed(self, token: int) -> None:
        """Read the next token."""
        self.feed_many([token])

    def feed_many(self, tokens: Ids | Sequence[int]) -> None:
        """Read several tokens."""
        ids = check_text(tokens, self._engine.vocabulary_size, least=0)
        if not len(ids):
            return
        hidden, past = self._engine.advance(ids, self._past)
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

    def log_probability(self, token: int) -> float:
        """Return the log-probability that this token comes next."""
        return float(self._ask()[check_token(token, self._engine.vocabulary_size)])

    def log_distribution(self, out: Floats | None = None) -> Floats:
        """Return the log-probabilities of all words."""
        own = self._ask()
        if out is None:
            return own.copy()
        if out.shape != own.shape or out.dtype != np.float32:
            raise InferenceError(
                f"out must be float32 of shape [{len(own)}], got {out.dtype} {list(out.shape)}"
            )
        out[:] = own
        return out

    def top_k(self, k: int) -> tuple[Ids, Floats]:
        """Return the k likeliest words."""
        return self._best(np.arange(self._engine.vocabulary_size), k)

    def complete(self, prefix: str, k: int) -> tuple[Ids, Floats]:
        """Return the k likeliest words that begin with a prefix."""
        return self._best(self._engine.beginning_with(prefix), k)

    def sample(self, u: float, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> int:
        """Choose the next word by a number in [0, 1)."""
        return choose(self._ask(), u, temperature, top_k, top_p)

    def fork(self) -> "NumpySession":
        """Return an independent copy of this session."""
        twin = NumpySession(self._engine)
        twin._tokens, twin._past, twin._memory = self._tokens, self._past, self._memory
        twin._hidden, twin._answer = self._hidden, self._answer
        return twin

    def save(self) -> bytes:
        """Return the session as bytes."""
        tensors: dict[str, NDArray[Any]] = {
            "version": np.array([VERSION], np.int64),
            "model": np.frombuffer(self._engine.fingerprint, np.uint8),
            "tokens": np.array([self._tokens], np.int64),
            "memory.states": self._memory.states,
            "memory.words": self._memory.words,
        }
        for number, (keys, values) in enumerate(
            zip(self._past.keys, self._past.values, strict=True)
        ):
            tensors[f"keys.{number}"], tensors[f"values.{number}"] = keys, values
        if self._hidden is not None:
            tensors["hidden"] = self._hidden.numbers
        plain = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        return bytes(save(plain))

    @classmethod
    def restored(cls, engine: "NumpyEngine", saved: bytes) -> "NumpySession":
        """Return the session that `save` wrote to these bytes; refuse anything else."""
        try:
            tensors = load(saved)
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
        session._memory = Memory(states=tensors["memory.states"], words=tensors["memory.words"])
        if "hidden" in tensors:
            session._hidden = Numbers(numbers=tensors["hidden"], scale=engine.hidden_scale)
        return session

    def _ask(self) -> Floats:
        if self._hidden is None:
            raise InferenceError("no token was fed yet: feed one before asking for the next")
        if self._answer is None:
            self._answer = self._engine.log_distribution(self._hidden, self._memory)
        return self._answer

    def _best(self, among: NDArray[np.int64], k: int) -> tuple[Ids, Floats]:
        own = self._ask()[among]
        best = largest_k(own, k)
        return among[best], own[best]


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
    if held and not 0 <= int(words.min()) <= int(words.max()) < engine.vocabulary_size:
        raise ValueError("words out of range")
    if fed:
        take("hidden", np.float32, 1, shape.width)
    if len(tensors) != 5 + 2 * shape.layers + fed:
        raise ValueError("it has unknown tensors")
