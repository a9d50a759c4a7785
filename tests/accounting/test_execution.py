"""The formulas agree with counting by doing, operation by operation.

`predict` performs a streaming step with counted numbers. Here its probabilities are those of the
torch model, so it does the real work, and what it counted is what rules `challenge` say, row by
row. A second counter watches the torch model itself and counts its matrix products.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from tests.support.execution import Past, predict
from tests.support.shapes import COUNTABLE, WATCHED, changed
from torch.utils._python_dispatch import TorchDispatchMode

from micronet_lm.accounting import PAPER, Account, Target, challenge, count
from micronet_lm.accounting.run_target import measured
from micronet_lm.config import CacheConfig, ModelConfig
from micronet_lm.layout import slots
from micronet_lm.model import LanguageModel
from micronet_lm.model.cache import Memory
from micronet_lm.model.state import StreamState

FULL = changed(COUNTABLE, cutoffs=(), embedding_widths=(12,))
PROJECTED = changed(COUNTABLE, embedding_widths=(8, 12, 2))


def build(shape: ModelConfig, *, cache: int, keep: float = 1.0) -> LanguageModel:
    """A model without a single zero weight, or one of which a share is pruned, some rows wholly."""
    torch.manual_seed(0)
    model = LanguageModel(shape, CacheConfig(size=cache, theta=0.3, lam=0.2) if cache else None)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "cache" in name:
                continue
            if "norm" not in name:
                parameter.normal_(std=0.4)
            if keep < 1 and "norm" not in name and parameter.numel():
                parameter.mul_(torch.rand_like(parameter) < keep)
                if parameter.dim() == 2:
                    parameter[0] = 0  # a row without weights: of positions, an input for all
                    parameter[:, 0] = 0
    return model.eval()


class Stream:
    """A model after a text that fills its context and its cache."""

    def __init__(self, model: LanguageModel, cache: int) -> None:
        shape = model.config
        self.model = model
        length = shape.context + cache + 3
        assert shape.vocabulary
        text = torch.randint(shape.vocabulary, (1, length), generator=torch.manual_seed(1))
        with torch.no_grad():
            hidden, self.state = model(text)
            self.memory = model.remember(None, hidden[:, :-1], text[:, 1:])
        assert self.state.seen == shape.context - 1
        assert self.memory is None or self.memory.words.shape[1] == cache

    def step(self, word: int) -> np.ndarray[Any, Any]:
        return step(self.model, self.state, self.memory, word)

    def past(self) -> Past:
        def first(tensors: Sequence[torch.Tensor]) -> list[Any]:
            return [tensor[0].numpy() for tensor in tensors]

        plain = Past(keys=first(self.state.keys), values=first(self.state.values))
        if self.memory is None or self.model.cache is None:
            return plain
        return Past(
            keys=plain.keys,
            values=plain.values,
            states=self.memory.states[0].numpy(),
            words=self.memory.words[0].tolist(),
            theta=self.model.cache.theta.item(),
            lam=self.model.cache.lam.item(),
            fade=self.model.cache.fade,
        )


@torch.no_grad()
def step(
    model: LanguageModel, state: StreamState, memory: Memory | None, word: int
) -> np.ndarray[Any, Any]:
    """Probabilities of the word after `word`, by the torch model."""
    hidden, _ = model(torch.tensor([[word]]), state)
    result: np.ndarray[Any, Any] = model.log_distribution(hidden, memory=memory)[0, 0].exp().numpy()
    return result


def tensors_of(model: LanguageModel) -> dict[str, np.ndarray[Any, Any]]:
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def target_of(model: LanguageModel, cache: int, shares: tuple[int, ...]) -> Target:
    held = tensors_of(model)
    matrices = {
        slot.name: measured(slot, held[slot.name], *([held[slot.bias]] if slot.bias else []))
        for slot in slots(model.config)
    }
    return Target(name="model", shape=model.config, matrices=matrices, cache=cache, shares=shares)


def rows_of(account: Account) -> dict[tuple[str, str, str], Fraction]:
    """What the formulas say, by part, name and kind, without bits."""
    found: Counter[tuple[str, str, str]] = Counter()
    for row in account.rows:
        for kind, amount in (
            ("multiplies", row.plain_multiplies),
            ("adds", row.plain_adds),
            ("other", row.other),
        ):
            found[row.label.part, row.label.name, kind] += amount  # type: ignore[assignment]
    return {key: Fraction(amount) for key, amount in found.items() if amount}


@pytest.mark.parametrize(("cache", "fade"), [(0, 0), (7, 0), (7, 3)])
@pytest.mark.parametrize("keep", [1.0, 0.6, 0.15], ids=["dense", "pruned", "sparse"])
@pytest.mark.parametrize(
    "shape", [COUNTABLE, FULL, PROJECTED], ids=["adaptive", "full", "projected"]
)
def test_a_step_performs_what_the_formulas_say(
    shape: ModelConfig, keep: float, cache: int, fade: int
) -> None:
    model = build(shape, cache=cache, keep=keep)
    if model.cache is not None:
        model.cache.fade = fade
    stream = Stream(model, cache)
    for number, word in enumerate(shape.bounds[:-1]):  # a word of each bin
        chances, tally = predict(shape, tensors_of(model), stream.past(), word + 1)
        np.testing.assert_allclose(chances, stream.step(word + 1), atol=1e-5)
        shares = tuple(int(other == number) for other in range(len(shape.cutoffs) + 1))
        target = replace(target_of(model, cache, shares), fades=fade > 0)
        account = count(target, challenge())
        assert {key: Fraction(n) for key, n in tally.counts.items()} == rows_of(account)


def test_the_mean_over_tokens_is_what_the_shares_give() -> None:
    """Performed for a text of six tokens, and averaged."""
    model = build(COUNTABLE, cache=4, keep=0.5)
    past, words = Stream(model, 4).past(), [3, 30, 12, 4, 9, 26]
    total = sum(
        sum(predict(COUNTABLE, tensors_of(model), past, word)[1].counts.values()) for word in words
    )
    target = target_of(model, 4, (3, 1, 2))  # words below 10, below 25, and above
    account = count(target, challenge())
    assert account.operations == Fraction(total, len(words))


def test_rules_paper_count_one_head_where_every_head_works() -> None:
    """The executed step shows by how much rules `paper` count less, for a dense model."""
    model = build(COUNTABLE, cache=0)
    _, tally = predict(COUNTABLE, tensors_of(model), Stream(model, 0).past(), 1)
    paper = rows_of(count(target_of(model, 0, (1, 0, 0)), PAPER))
    layer = [("layer 1", "position scores", kind) for kind in ("multiplies", "adds")]
    layer.append(("layer 1", "softmax", "other"))
    for key in layer:
        assert tally.counts[key] == COUNTABLE.heads * paper[key]
    for name in ("key scores", "values", "output", "inner", "outer", "queries, keys, values"):
        for kind in ("multiplies", "adds"):
            assert tally.counts["layer 1", name, kind] == paper["layer 1", name, kind]


class Watch(TorchDispatchMode):
    """Counts the multiplies and adds of every product and sum that torch is asked for."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.multiplies = self.adds = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in {"mm", "bmm", "addmm"}:
            inner = args[1 if name == "addmm" else 0].shape[-1]
            self.multiplies += result.numel() * inner
            self.adds += result.numel() * (inner - 1 + (name == "addmm"))
        elif name in {"add", "add_"} and result.is_floating_point():
            self.adds += result.numel()
        elif name in {"mul", "mul_"} and result.is_floating_point():
            self.multiplies += result.numel()
        return result


@contextmanager
def watched() -> Iterator[Watch]:
    with torch.no_grad(), Watch() as watch:
        yield watch


@pytest.mark.parametrize("cache", [0, 50])
def test_the_torch_model_is_asked_for_what_the_formulas_say(cache: int) -> None:
    model = build(WATCHED, cache=cache)
    stream = Stream(model, cache)
    for number, word in enumerate(WATCHED.bounds[:-1]):
        shares = tuple(int(other == number) for other in range(3))
        rows = count(target_of(model, cache, shares), challenge()).rows
        with watched() as watch:
            hidden, _ = model(torch.tensor([[word]]), stream.state)
        inside = [row for row in rows if row.label.component not in {"softmax", "cache"}]
        assert watch.multiplies == sum(row.plain_multiplies for row in inside)
        assert watch.adds == sum(row.plain_adds for row in inside)
        with watched() as watch:
            model.log_distribution(hidden, memory=stream.memory)
        outside = [row for row in rows if row.label.component in {"softmax", "cache"}]
        # Its adds are not compared: the model works with logarithms there.
        assert watch.multiplies == sum(row.plain_multiplies for row in outside)
