"""Local search for the cache's θ and λ on a text, after training (sections 3.5, 4 and appendix F).

Hidden states and P_softmax are computed once. A new θ then costs one pass over the similarities,
and a new λ costs almost nothing, so the best λ is found for each θ: the loss is convex in λ, and
Newton's method needs a few steps. The remaining smooth curve over log θ is minimized from the
trained value, by a bracket and then by parabolas.

Values that suit the searched text can be worse elsewhere. So a search may use one half of the text
only, and keep what it found only where that is better on the other half too.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from micronet_lm.config import CacheConfig
from micronet_lm.model import LanguageModel
from micronet_lm.model.recall import recall
from micronet_lm.model.sizes import sizes_for
from micronet_lm.training import hidden_states, perplexity

STEP = math.log(1.25)
"""First step along log θ."""

TOLERANCE = 0.005
"""Accuracy of log θ: the loss is flat near its minimum, so half a per cent of θ is enough."""

FARTHEST = 20.0
"""Largest |log θ| that is tried: beyond it the cache does not change any more."""

SMALLEST_LAM = 1e-6
"""Smallest distance of λ from 0 and 1."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One tried (θ, λ) and its loss."""

    theta: float
    lam: float
    loss: float
    """Mean negative log-probability, in nats."""

    @property
    def perplexity(self) -> float:
        """exp(loss)."""
        return perplexity(self.loss)


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """What the second half of the text says of values that were found on the first."""

    trained: float
    """Its loss with the model as it was trained: with its own cache, or without one."""

    found: float
    """Its loss with what was found."""

    @property
    def better(self) -> bool:
        """Whether what was found is no worse there, and so is kept."""
        return self.found <= self.trained


@dataclass(frozen=True, kw_only=True)
class Search:
    """The result of a search and all its points."""

    size: int
    """Size of the cache."""

    ramp: int
    """Ramp of the cache."""

    fade: int
    """Fade of the searched cache."""

    before: float
    """Loss of the model before the search: with its own cache and size, or without one."""

    start: Point
    """The first point: the model's own θ and λ, at the new size."""

    found: Point
    """The best point."""

    points: tuple[Point, ...]
    """All points in the order of the search."""

    kept: Point | None
    """What the result has, with the loss of the whole text; None where it goes without a cache."""

    kept_size: int
    """Size of the result's cache: the one searched for, or the trained one."""

    kept_fade: int
    """Fade of the result's cache, likewise."""

    confirmation: Confirmation | None
    """What the other half of the text says; None where the search used all of it."""


def search_cache(
    model: LanguageModel,
    surface: "Surface",
    *,
    size: int,
    ramp: int | None = None,
    fade: int | None = None,
    confirm: bool = False,
    tell: Callable[[Point], None] = lambda _: None,
) -> Search:
    """Find the best θ and λ for a cache of `size`, without changing the model.

    `ramp` and `fade` are the new cache's; None keeps the model's.

    `surface` is the loss of a text under the model. For a model without a cache the search begins
    at the paper's values. `tell` is called with the best λ for each θ.

    With `confirm` the search uses the first half of the text only. Where the trained cache, or
    none, predicts the second half better than what was found, it is kept.
    """
    cache = model.cache
    searched, other = surface.halves() if confirm else (surface, None)
    if ramp is None:
        ramp = cache.given_ramp if cache else 0
    own_size, own_fade = (cache.size, cache.fade) if cache else (0, 0)
    fade = own_fade if fade is None else fade
    if cache is None:
        own = CacheConfig(size=size)
        theta, lam = own.theta, own.lam
        before = -float(surface.log_softmax.mean())
    else:
        theta, lam = cache.theta.item(), cache.lam.item()
        before = surface.loss(surface.log_cache(theta, own_size, own_fade), lam, cache.ramp)
    points: list[Point] = []

    def best_at(log_theta: float) -> float:
        log_cache = searched.log_cache(math.exp(log_theta), size, fade)
        begin = min(points, key=_loss).lam if points else lam
        tried = [
            Point(theta=math.exp(log_theta), lam=at, loss=loss)
            for at, loss in searched.best_lam(log_cache, begin, min(ramp, size))
        ]
        points.extend(tried)
        best = min(tried, key=_loss)
        tell(best)
        return best.loss

    _descend(best_at, math.log(theta))
    start, found = points[0], min(points, key=_loss)
    confirmation: Confirmation | None = None
    kept: Point | None = found
    kept_size, kept_fade = size, fade
    if other is not None:
        trained = None if cache is None else Point(theta=theta, lam=lam, loss=before)
        confirmation = Confirmation(
            trained=_at(other, trained, own_size, ramp, own_fade).loss,
            found=_at(other, found, size, ramp, fade).loss,
        )
        start = _at(surface, start, size, ramp, fade)
        if not confirmation.better:
            kept, kept_size, kept_fade = trained, own_size, own_fade
        kept = kept and _at(surface, kept, kept_size, ramp, kept_fade)
    return Search(
        size=size,
        ramp=ramp,
        fade=fade,
        before=before,
        start=start,
        found=found,
        points=tuple(points),
        kept=kept,
        kept_size=kept_size,
        kept_fade=kept_fade,
        confirmation=confirmation,
    )


def _at(surface: "Surface", point: Point | None, size: int, ramp: int, fade: int) -> Point:
    """Return a point with its loss on another text; without a point, the loss without a cache."""
    if point is None:
        return Point(theta=math.nan, lam=0.0, loss=-float(surface.log_softmax.mean()))
    loss = surface.loss(surface.log_cache(point.theta, size, fade), point.lam, min(ramp, size))
    return replace(point, loss=loss)


def _loss(point: Point) -> float:
    return point.loss


class Surface:
    """The loss of a text as a function of θ, λ and the cache's size.

    It keeps the text's hidden states: 4 D bytes per token.
    """

    _begin = 0
    """The first word that its losses are of."""

    def __init__(
        self,
        model: LanguageModel,
        ids: NDArray[np.unsignedinteger],
        *,
        chunk: int | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> None:
        states, words, logs = [], [], []
        for hidden, following in hidden_states(model, ids, chunk=chunk):
            with torch.inference_mode():
                logs.append(model.softmax.log_probability(hidden, following, model.tables))
            states.append(hidden)
            words.append(following)
            advance(len(following))
        self._states = torch.cat(states).unsqueeze(0)  # (1, N, D)
        self._words = torch.cat(words).unsqueeze(0)  # (1, N)
        self.log_softmax = torch.cat(logs).double()  # (N)

    def halves(self) -> tuple["Surface", "Surface"]:
        """Return the first and the second half of the text, which remembers the first."""
        middle = max(1, len(self.log_softmax) // 2)
        first, second = copy.copy(self), copy.copy(self)
        second._begin = middle
        first.log_softmax = self.log_softmax[:middle]
        second.log_softmax = self.log_softmax[middle:]
        return first, second

    @torch.inference_mode()
    def log_cache(self, theta: float, size: int, fade: int = 0) -> Tensor:
        """Compute log P_cache of every word (N)."""
        begin, end = self._begin, self._begin + len(self.log_softmax)
        oldest = max(0, begin - size)
        states, past = self._states[:, begin:end], self._states[:, oldest:begin]
        result = recall(theta * states, states, self._words[:, oldest:end], past, size, fade)
        return result[0].double()

    @torch.inference_mode()
    def softmax_loss(self, model: LanguageModel, scale: float) -> float:
        """Return the mean loss of a model's softmax, given hidden states of another size."""
        total, chunk = 0.0, sizes_for(self._states.device).chunk
        for low in range(self._begin, self._begin + len(self.log_softmax), chunk):
            high = min(low + chunk, self._begin + len(self.log_softmax))
            hidden, words = scale * self._states[0, low:high], self._words[0, low:high]
            logs = model.softmax.log_probability(hidden, words, model.tables)
            total -= float(logs.double().sum())
        return total / len(self.log_softmax)

    def loss(self, log_cache: Tensor, lam: float, ramp: int = 0) -> float:
        """Return the mean loss of the mixture; a text's first word has no cache."""
        return -float(self._mixed(log_cache, lam, self._parts(ramp)).mean())

    def best_lam(self, log_cache: Tensor, lam: float, ramp: int = 0) -> list[tuple[float, float]]:
        """Minimize by Newton's method from `lam`; return each visited λ with its loss."""
        tried: list[tuple[float, float]] = []
        softmax, cache = self.log_softmax[self._without :], log_cache[self._without :]
        parts = self._parts(ramp)
        low, high = SMALLEST_LAM, 1 - SMALLEST_LAM
        for _ in range(30):
            lam = min(max(lam, low), high)
            mixed = self._mixed(log_cache, lam, parts)
            tried.append((lam, -float(mixed.mean())))
            # d loss / d λ = mean of (P_softmax − P_cache) / P, on the ramp a part of it; the second
            # derivative its square's.
            mixed = mixed[self._without :]
            slope = parts * ((softmax - mixed).exp() - (cache - mixed).exp())
            first, second = float(slope.mean()), float(slope.square().mean())
            low, high = (low, lam) if first > 0 else (lam, high)
            move = -first / second if second else 0.0
            if abs(move) < 1e-5 or high - low < 1e-5:
                break
            # A step out of the interval that contains the minimum is replaced by bisection.
            lam = lam + move if low < lam + move < high else (low + high) / 2
        return tried

    @property
    def _without(self) -> int:
        """Number of first words of the text that are predicted without a cache."""
        return 0 if self._begin else 1

    def _parts(self, ramp: int) -> Tensor:
        """Return the part of λ that each word with a cache gets on the ramp."""
        like = self.log_softmax
        held = torch.arange(self._without, len(like), dtype=torch.float64, device=like.device)
        held = self._begin + held
        return (held / ramp).clamp(max=1) if ramp else torch.ones_like(held)

    def _mixed(self, log_cache: Tensor, lam: float, parts: Tensor) -> Tensor:
        """Return log((1 − λ) P_softmax + λ P_cache) (N)."""
        share = lam * parts
        softmax, cache = self.log_softmax[self._without :], log_cache[self._without :]
        mixed = torch.logaddexp(softmax + torch.log1p(-share), cache + share.log())
        return torch.cat([self.log_softmax[: self._without], mixed])


def _descend(value: Callable[[float], float], start: float) -> None:
    """Find the nearest minimum of a smooth function: a bracket first, then parabolas."""
    known = {start: value(start), start + STEP: value(start + STEP)}
    if not all(math.isfinite(loss) for loss in known.values()):
        return
    step = STEP if known[start + STEP] < known[start] else -STEP
    here = min(known, key=known.__getitem__)
    for _ in range(20):
        if abs(here + step) > FARTHEST:
            return
        known[here + step] = value(here + step)
        if not known[here + step] < known[here]:
            break
        here, step = here + step, 1.5 * step
    for _ in range(12):
        best = min(known, key=known.__getitem__)
        left = max((x for x in known if x < best), default=None)
        right = min((x for x in known if x > best), default=None)
        if left is None or right is None:  # no minimum within the bounds
            return
        vertex = _vertex(*((x, known[x]) for x in (left, best, right)))
        if min(abs(vertex - x) for x in known) < TOLERANCE:
            return
        known[vertex] = value(vertex)


def _vertex(*points: tuple[float, float]) -> float:
    """Return the minimum of the parabola through three points, the middle one the lowest."""
    (a, fa), (b, fb), (c, fc) = points
    left, right = (b - a) * (fb - fc), (b - c) * (fb - fa)
    if left == right:
        return b
    return b - 0.5 * ((b - a) * left - (b - c) * right) / (left - right)
