"""Log-probabilities of several words per token: the softmax alone, all bins, and with the cache."""

from typing import Any

import pytest
import torch
from tests.support.bfloat16 import skip_without_bfloat16
from tests.support.cache_definition import VOCABULARY, cache, direct, text
from tests.support.gradients import Sizes, assert_bfloat16_is_close, assert_same, draw_operands
from tests.support.models import draw_weights
from tests.support.shapes import SOFTMAXES, softmax_shape
from tests.support.sizes import set_sizes
from torch import Tensor

from micronet_lm.config import CacheConfig, ModelConfig
from micronet_lm.model import LanguageModel
from micronet_lm.model.log_softmax import linear_log_softmax
from micronet_lm.model.logsumexp import linear_logsumexp


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("count", "words"), [(7, 1000), (1, 3), (300, 700), (0, 5)])
def test_value_and_gradients(
    monkeypatch: pytest.MonkeyPatch, keep: bool, count: int, words: int
) -> None:
    set_sizes(monkeypatch, logits_kept=1 << 30 if keep else 0, logits=4096)  # several pieces
    random = torch.Generator().manual_seed(count)
    x, weight, bias = draw_operands(count, words, random)
    # With three words to choose from, some are asked for twice.
    asked = torch.randint(words, (count, 5), generator=random)
    ours = linear_log_softmax(x, weight, bias, asked)
    theirs = torch.log_softmax(x @ weight.T + bias, dim=-1).gather(1, asked)
    assert_same(ours, theirs, (x, weight, bias), random)


@pytest.mark.parametrize("keep", [True, False])
def test_bfloat16_products_are_summed_up_in_fp32(
    monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    """Gradients of thousands of tokens do not drown in bfloat16's seven bits."""
    skip_without_bfloat16()
    set_sizes(monkeypatch, logits_kept=1 << 30 if keep else 0)
    torch.manual_seed(0)
    x, weight, bias = torch.randn(3000, 16), 0.1 * torch.randn(700, 16), torch.zeros(700)
    asked = torch.randint(700, (3000, 5))
    assert_bfloat16_is_close(lambda a, w, b: linear_log_softmax(a, w, b, asked), (x, weight, bias))


def model(shape: ModelConfig, size: int | None = None) -> LanguageModel:
    torch.manual_seed(0)
    config = CacheConfig(size=size, theta=0.05, lam=0.3) if size else None
    return draw_weights(LanguageModel(shape, config), std=0.3).double()


@pytest.mark.parametrize("size", [None, 12, 1000])
@pytest.mark.parametrize("remembered", [0, 9])
@pytest.mark.parametrize("shape", SOFTMAXES)
def test_several_words_agree_with_the_whole_distribution(
    shape: str, size: int | None, remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, and the gradients of every weight, of words in all bins, some of them twice."""
    set_sizes(monkeypatch, recalled_queries=7)
    ours = model(SOFTMAXES[shape], size)
    ids = torch.randint(100, (2, 31))
    asked = torch.randint(100, (2, 30 - remembered, 8))
    asked[:, :, 7] = asked[:, :, 3]
    asked[:, :, 5] = ids[:, remembered + 1 :]  # what really follows is often asked for too
    words = ids[:, remembered + 1 :]
    scale = torch.rand(asked.shape, dtype=torch.float64)

    def states() -> tuple[Tensor, Any]:
        hidden, _ = ours(ids[:, :-1])
        memory = ours.remember(None, hidden[:, :remembered], ids[:, 1 : remembered + 1])
        return hidden[:, remembered:], memory if remembered else None

    hidden, memory = states()
    several = ours.log_probabilities(hidden, asked, words, memory)
    (several * scale).sum().backward()
    mine = {name: p.grad for name, p in ours.named_parameters()}
    ours.zero_grad()
    hidden, memory = states()
    logs = ours.softmax.log_distribution(hidden.flatten(0, 1), ours.tables).view(2, -1, 100)
    if ours.cache is not None:
        past = memory.states if memory else hidden[:, :0].detach()
        keys = torch.cat([past, hidden], 1)
        every = torch.cat([ids[:, 1 : remembered + 1], words], 1)
        scores = ours.cache.theta * hidden @ keys.mT
        query = torch.arange(hidden.shape[1])[:, None] + past.shape[1]
        key = torch.arange(keys.shape[1])
        assert size is not None
        outside = (key >= query) | (key < query - size)
        outside &= query > 0  # a text's first token does without; this keeps NaN away from it
        scores = scores.masked_fill(outside, float("-inf"))
        votes = scores.softmax(-1) @ torch.nn.functional.one_hot(every, 100).double()
        lam = ours.cache.lam
        mixed = ((1 - lam) * logs.exp() + lam * votes).log()
        logs = mixed if memory else torch.cat([logs[:, :1], mixed[:, 1:]], 1)
    expected = logs.gather(2, asked)
    torch.testing.assert_close(several, expected)
    (expected * scale).sum().backward()
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(mine[name], parameter.grad, msg=name)


def test_one_of_several_is_the_plain_log_probability() -> None:
    ours = model(SOFTMAXES["four bins"], 12)
    hidden, words = torch.randn(2, 30, 16).double(), torch.randint(100, (2, 30))
    asked = torch.cat([torch.randint(100, (2, 30, 3)), words[..., None]], -1)
    several = ours.log_probabilities(hidden, asked, words)
    torch.testing.assert_close(several[..., -1], ours.log_probability(hidden, words))


def test_a_tail_is_computed_only_for_tokens_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = model(softmax_shape((10, 30), (16, 8, 4)))
    seen = []

    def spy(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        seen.append((len(x), len(weight)))
        return linear_logsumexp(x, weight, bias)

    monkeypatch.setattr("micronet_lm.model.adaptive.linear_logsumexp", spy)
    asked = torch.tensor([[[0, 1], [9, 2], [10, 3], [10, 29], [99, 12], [5, 5]]])
    ours.log_probabilities(torch.randn(1, 6, 16).double(), asked, asked[..., 0])
    assert seen == [(3, 20), (1, 70)]


def test_every_weight_has_a_gradient_even_when_no_word_needs_its_bin() -> None:
    ours = model(SOFTMAXES["four bins"], 12)
    hidden, _ = ours(torch.zeros(1, 3, dtype=torch.long))
    zeros = torch.zeros(1, 3, dtype=torch.long)
    ours.log_probabilities(hidden, zeros[..., None], zeros).sum().backward()
    assert [name for name, p in ours.named_parameters() if p.grad is None] == []


@pytest.mark.parametrize("remembered", [0, 9])
def test_the_cache_against_the_definition_and_finite_differences(
    remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among the words asked for are some that the cache does not hold, and some twice."""
    set_sizes(monkeypatch, recalled_queries=7)
    hidden, words, softmax = text(25)
    words[words == 4] = 5  # nothing votes for 4
    asked = torch.randint(VOCABULARY, (1, 25, 4))
    asked[:, :, 1], asked[:, :, 3] = 4, asked[:, :, 0]
    ours = cache(9)
    chances = direct(0.4, 0.3, 9, hidden[0], words[0])
    expected = softmax[0].exp()
    expected[1:] = 0.7 * expected[1:] + 0.3 * chances[1:]
    past = ours.remember(None, hidden[:, :remembered], words[:, :remembered])
    memory = past if remembered else None
    own = slice(remembered, None)
    logs = softmax[:, own].gather(2, asked[:, own])

    def mixed(theta: Tensor, lam: Tensor, states: Tensor, softmax_logs: Tensor) -> Tensor:
        ours.free_theta, ours.free_lam = theta, lam  # type: ignore[assignment]
        return ours.log_probabilities(softmax_logs, states, asked[:, own], words[:, own], memory)

    inputs = [p.detach().clone().requires_grad_() for p in (ours.free_theta, ours.free_lam)]
    inputs += [hidden[:, own].clone().requires_grad_(), logs.clone().requires_grad_()]
    del ours.free_theta, ours.free_lam
    value = mixed(*inputs)
    torch.testing.assert_close(value[0].exp(), expected[own].gather(1, asked[0, own]))
    assert torch.autograd.gradcheck(mixed, inputs)
    value.sum().backward()
    assert all(bool(leaf.grad.isfinite().all()) for leaf in inputs if leaf.grad is not None)


def test_nothing_is_as_wide_as_the_vocabulary() -> None:
    """Not in the cache's part: the largest tensor is a block of scores or of votes."""
    torch.manual_seed(0)
    wide = 100_000
    hidden = torch.randn(1, 30, 6, dtype=torch.float64, requires_grad=True)
    words, asked = torch.randint(wide, (1, 30)), torch.randint(wide, (1, 30, 4))
    asked[0, 1:, 0] = words[0, :-1]
    logs = torch.full(asked.shape, -5.0, dtype=torch.float64)
    with Sizes() as sizes:
        cache(12).log_probabilities(logs, hidden, asked, words, None).sum().backward()
    assert sizes.seen
    assert max(sizes.seen) <= 30 * 31
