"""Counting by doing: a streaming step whose every multiply and add is performed and counted.

Numbers here are `Counted`: each operation on them computes its result and is entered in a `Tally`.
The step is written from the model's definition alone. It skips weights that are zero, as a sparse
kernel does, and knows none of the formulas, so it is an independent check of them. What it counts
is what rules `challenge` count before bits are regarded. Rules `paper` count some of it only once
a layer, and some not at all; see `micronet_lm.accounting.rules`.

It is slow: one Python call for each operation.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from micronet_lm.config import ModelConfig

Array = NDArray[np.floating]
EPSILON = 1e-5
"""LayerNorm's ε, as the model has it."""


@dataclass
class Tally:
    """How many operations of each kind were performed, by part and name of the row."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Keys are part, name, and `multiplies`, `adds` or `other`."""
    _place: tuple[str, str] = ("", "")
    _whole: bool = False

    @contextmanager
    def at(self, part: str, name: str, *, whole: bool = False) -> Iterator[None]:
        """Enter what is done inside under a row; a `whole` row's operations are all `other`."""
        before = self._place, self._whole
        self._place, self._whole = (part, name), whole
        yield
        self._place, self._whole = before

    def enter(self, kind: str) -> None:
        """Count one operation."""
        self.counts[*self._place, "other" if self._whole else kind] += 1


class Counted:
    """A number whose operations are counted."""

    __slots__ = ("tally", "value")

    def __init__(self, value: float, tally: Tally) -> None:
        self.value, self.tally = float(value), tally

    def __add__(self, other: "Counted | float") -> "Counted":
        return self._done("adds", self.value + _value(other))

    def __sub__(self, other: "Counted | float") -> "Counted":
        return self._done("adds", self.value - _value(other))

    def __mul__(self, other: "Counted | float") -> "Counted":
        return self._done("multiplies", self.value * _value(other))

    def __truediv__(self, other: "Counted | float") -> "Counted":
        return self._done("other", self.value / _value(other))

    def exp(self) -> "Counted":
        """Return the exponential: one operation."""
        return self._done("other", math.exp(self.value))

    def inverse_root(self) -> "Counted":
        """Return 1/√: one operation."""
        return self._done("other", 1 / math.sqrt(self.value))

    def positive(self) -> "Counted":
        """Return ReLU: one operation."""
        return self._done("other", max(self.value, 0.0))

    def _done(self, kind: str, value: float) -> "Counted":
        self.tally.enter(kind)
        return Counted(value, self.tally)


Vector = list[Counted]


@dataclass(frozen=True, kw_only=True)
class Past:
    """What a stream remembers: full contexts and, where there is a cache, a full cache."""

    keys: Sequence[Array]
    """One (C − 1, h, k) per layer, the newest last."""
    values: Sequence[Array]
    """One (C − 1, h, v) per layer, the newest last."""
    states: Array | None = None
    """(N, d) activations in the cache."""
    words: Sequence[int] = ()
    """The word that followed each of them."""
    theta: float = 0.0
    lam: float = 0.0
    fade: int = 0


def predict(
    shape: ModelConfig, tensors: Mapping[str, Array], past: Past, word: int
) -> tuple[list[float], Tally]:
    """Perform one streaming step: a word's successor's probabilities, and what they took.

    `tensors` are a checkpoint's, without the lead `model.`.
    """
    step = _Step(shape, tensors, Tally())
    x = step.embed(word)
    for number in range(shape.layers):
        x = step.attend(x, number, past.keys[number], past.values[number])
        x = step.feed_forward(x, number)
    chances = step.softmax(x, 1 - past.lam if past.states is not None else None)
    if past.states is not None:
        step.vote(chances, x, past)
    return [chance.value for chance in chances], step.tally


class _Step:
    """The parts of a step, over one model's tensors."""

    def __init__(self, shape: ModelConfig, tensors: Mapping[str, Array], tally: Tally) -> None:
        self.shape, self.tensors, self.tally = shape, tensors, tally

    def embed(self, word: int) -> Vector:
        """Look the word up, and bring it to the model's width."""
        bounds = self.shape.bounds
        bin_ = max(number for number, low in enumerate(bounds[:-1]) if word >= low)
        row = self._vector(self.tensors[f"embedding.tables.{bin_}"][word - bounds[bin_]])
        matrix = self.tensors.get(f"embedding.projections.{bin_}.weight")
        if matrix is None:
            return row
        with self.tally.at("input", f"projection {bin_ + 1}"):
            return _times(matrix, row)

    def attend(self, x: Vector, number: int, keys: Array, values: Array) -> Vector:
        """Perform one layer's attention to the C − 1 tokens before and to this one."""
        part, lead, shape = f"layer {number + 1}", f"blocks.{number}.attention", self.shape
        h, k, v = shape.heads, shape.key_width, shape.value_width
        at, tensors = self.tally.at, self.tensors
        normal = self._norm(x, f"{lead}_norm", part, "LayerNorm")
        with at(part, "queries, keys, values"):
            qkv = _times(tensors[f"{lead}.qkv.weight"], normal, tensors[f"{lead}.qkv.bias"])
        with at(part, "queries / √d_k"):
            queries = [q * k**-0.5 for q in qkv[: h * k]]
        table = tensors[f"{lead}.positions"].T  # (C, k)
        mixed: Vector = []
        for head in range(h):
            own = slice(head * k, (head + 1) * k)
            query, key = queries[own], qkv[h * k :][own]
            value = qkv[2 * h * k :][head * v : (head + 1) * v]
            every_key = [*map(self._vector, keys[:, head]), key]
            every_value = [*map(self._vector, values[:, head]), value]
            with at(part, "key scores"):
                scores = [_dot(query, other) for other in every_key]
            with at(part, "position scores"):
                for place, row in enumerate(table):
                    products = [q * float(w) for q, w in zip(query, row, strict=True) if w != 0]
                    if products:
                        scores[place] = scores[place] + _sum(products)
            with at(part, "softmax", whole=True):
                chances = _softmax(scores)
            with at(part, "values"):
                columns = zip(*every_value, strict=True)
                mixed += [_dot(chances, list(column)) for column in columns]
        with at(part, "output"):
            output = _times(tensors[f"{lead}.output.weight"], mixed)
        with at(part, "residual"):
            return [a + b for a, b in zip(x, output, strict=True)]

    def feed_forward(self, x: Vector, number: int) -> Vector:
        """Perform a layer's feed-forward part; LayerNorm and residual share attention's rows."""
        part, lead = f"layer {number + 1}", f"blocks.{number}"
        at, tensors = self.tally.at, self.tensors
        normal = self._norm(x, f"{lead}.ffn_norm", part, "LayerNorm")
        with at(part, "inner"):
            inner = _times(tensors[f"{lead}.inner.weight"], normal, tensors[f"{lead}.inner.bias"])
        with at(part, "ReLU"):
            inner = [value.positive() for value in inner]
        with at(part, "outer"):
            outer = _times(tensors[f"{lead}.outer.weight"], inner, tensors[f"{lead}.outer.bias"])
        with at(part, "residual"):
            return [a + b for a, b in zip(x, outer, strict=True)]

    def softmax(self, x: Vector, share: float | None) -> Vector:
        """Return all words' probabilities; `share` is the softmax's part if there is a cache."""
        tails = len(self.shape.cutoffs)
        chances = self._bin(x, 0, share)
        words, entries = chances[: len(chances) - tails], chances[len(chances) - tails :]
        for number, entry in enumerate(entries, start=1):
            words += self._bin(x, number, entry)
        return words

    def vote(self, chances: Vector, x: Vector, past: Past) -> None:
        """Let the cache's activations vote for the words that followed them."""
        assert past.states is not None
        at = self.tally.at
        with at("cache", "θ · hidden state"):
            query = [number * past.theta for number in x]
        with at("cache", "similarities"):
            scores = [_dot(query, self._vector(row)) for row in past.states]
        if past.fade:
            with at("cache", "fading"):  # what is lost at each age is known before
                lost = [age / past.fade for age in range(len(scores), 0, -1)]
                scores = [score + -one for score, one in zip(scores, lost, strict=True)]
        with at("cache", "softmax", whole=True):
            votes = _softmax(scores, past.lam)
        with at("cache", "votes"):
            for word, vote in zip(past.words, votes, strict=True):
                chances[word] = chances[word] + vote

    def _bin(self, x: Vector, number: int, factor: Counted | float | None) -> Vector:
        """Return the probabilities of a bin's words, times a factor."""
        part, tensors = f"bin {number + 1}", self.tensors
        projection = tensors.get(f"softmax.projections.{number}.weight")
        if projection is not None:
            with self.tally.at(part, "projection"):
                x = _times(projection, x)
        with self.tally.at(part, "words"):
            table, biases = (
                tensors[f"{n}.{number}"] for n in ("embedding.tables", "softmax.biases")
            )
            logits = _times(table, x, biases)
        if number == 0 and self.shape.cutoffs:
            with self.tally.at(part, "other bins"):
                logits += _times(tensors["softmax.tail_weight"], x, tensors["softmax.tail_bias"])
        with self.tally.at(part, "softmax", whole=True):
            return _softmax(logits, factor)

    def _norm(self, x: Vector, name: str, part: str, row: str) -> Vector:
        gains, biases = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        share = 1 / len(x)
        with self.tally.at(part, row, whole=True):
            mean = _sum(x) * share
            centred = [number - mean for number in x]
            variance = _sum([number * number for number in centred]) * share
            scale = (variance + EPSILON).inverse_root()
            normal = [number * scale for number in centred]
            gained = [n * float(g) for n, g in zip(normal, gains, strict=True)]
            return [n + float(b) for n, b in zip(gained, biases, strict=True)]

    def _vector(self, row: Array) -> Vector:
        return [Counted(number, self.tally) for number in row]


def _value(number: Counted | float) -> float:
    return number.value if isinstance(number, Counted) else number


def _sum(terms: Sequence[Counted]) -> Counted:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _dot(a: Vector, b: Vector) -> Counted:
    return _sum([x * y for x, y in zip(a, b, strict=True)])


def _times(matrix: Array, x: Vector, bias: Array | None = None) -> Vector:
    """Multiply a matrix and a vector: only non-zero weights and biases take part."""
    tally, result = x[0].tally, []
    for number, row in enumerate(matrix):
        (places,) = np.nonzero(row)
        terms = [x[place] * float(row[place]) for place in places]
        if bias is not None and bias[number] != 0:
            terms.append(Counted(bias[number], tally))
        result.append(_sum(terms) if terms else Counted(0.0, tally))
    return result


def _softmax(scores: Vector, factor: Counted | float | None = None) -> Vector:
    """Return exponentials over their sum, times a factor, which is put into the divisor's place."""
    powers = [score.exp() for score in scores]
    total = _sum(powers)
    if factor is None:
        return [power / total for power in powers]
    scale = (factor if isinstance(factor, Counted) else Counted(factor, total.tally)) / total
    return [power * scale for power in powers]
