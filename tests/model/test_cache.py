"""The cache: against the definition, without leaks, whatever is remembered, in any chunks."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bfloat16 import skip_without_bfloat16
from tests.support.cache_definition import VOCABULARY, cache, direct, text
from tests.support.gradients import Sizes
from tests.support.shapes import TWO_BINS
from tests.support.sizes import set_sizes
from torch import Tensor

from micronet_lm.config import CacheConfig
from micronet_lm.model import Cache, LanguageModel, Memory


@pytest.fixture(autouse=True, params=[0, 1 << 20], ids=["one by one", "together"])
def _small_blocks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Blocks of 7 queries, of one sequence as on a processor or of several as on a GPU."""
    set_sizes(monkeypatch, recalled_queries=7, recalled=request.param)


def of_words(distribution: Tensor, words: Tensor) -> Tensor:
    return distribution.gather(-1, words.unsqueeze(-1)).squeeze(-1)


@settings(max_examples=30)
@given(
    length=st.integers(1, 40),
    size=st.integers(1, 50),
    cut=st.integers(0, 39),
    ramp=st.integers(0, 50),
    fade=st.sampled_from([0, 1, 7, 1000]),
    seed=st.integers(0, 9),
)
def test_mixture_is_the_definition(
    length: int, size: int, cut: int, ramp: int, fade: int, seed: int
) -> None:
    """For any length, size up to longer than the text, ramp and fade, cut in two anywhere."""
    hidden, words, softmax = text(length, seed, batch=2)
    cut, ramp = min(cut, length - 1), min(ramp, size)
    ours = cache(size, ramp=ramp, fade=fade)
    expected = softmax.exp()
    for row in range(2):
        chances = direct(0.4, 0.3, size, hidden[row], words[row], fade)
        for n in range(1, length):
            share = 0.3 * min(1, min(n, size) / ramp) if ramp else 0.3
            expected[row, n] = (1 - share) * expected[row, n] + share * chances[n]
    memory = None
    every, single = [], []
    for part in (slice(0, cut), slice(cut, length)):
        if part.start == part.stop:
            continue
        pieces = (hidden[:, part], words[:, part], memory)
        every.append(ours.log_distribution(softmax[:, part], *pieces))
        single.append(ours.log_probability(of_words(softmax[:, part], words[:, part]), *pieces))
        memory = ours.remember(memory, hidden[:, part], words[:, part])
    torch.testing.assert_close(torch.cat(every, 1).exp(), expected)
    torch.testing.assert_close(torch.cat(single, 1).exp(), of_words(expected, words))
    torch.testing.assert_close(torch.cat(every, 1).exp().sum(-1), torch.ones(2, length).double())
    assert memory is not None
    assert memory.words.tolist() == words[:, -size:].tolist()
    assert torch.equal(memory.states, hidden[:, -size:])


def test_a_smaller_size_ends_the_ramp_sooner() -> None:
    hidden, words, softmax = text(20)
    short, ours = cache(5, ramp=5), cache(9, ramp=9)
    ours.size = 5
    pieces = (softmax, hidden, words, None)
    assert torch.equal(ours.log_distribution(*pieces), short.log_distribution(*pieces))


def test_first_token_of_a_text_has_no_cache() -> None:
    hidden, words, softmax = text(1)
    mixed = cache(5).log_distribution(softmax, hidden, words, None)
    assert torch.equal(mixed, softmax)


def test_a_word_that_is_not_in_the_cache_gets_the_softmax_share_alone() -> None:
    hidden, words, softmax = text(3)
    words[:] = torch.tensor([1, 1, 2])
    mixed = cache(5).log_probability(of_words(softmax, words), hidden, words, None)
    expected = of_words(softmax, words)[0, 2] + math.log(0.7)
    assert float(mixed[0, 2].detach()) == pytest.approx(float(expected))


def test_the_cache_does_not_see_the_word_it_predicts() -> None:
    """Changing a word, or what comes after it, changes nothing up to its own prediction."""
    hidden, words, softmax = text(30)
    ours = cache(12)
    before = ours.log_distribution(softmax, hidden, words, None)
    changed, later = words.clone(), hidden.clone()
    changed[0, 20] = (changed[0, 20] + 1) % VOCABULARY
    later[0, 21:] += 1
    after = ours.log_distribution(softmax, later, changed, None)
    assert torch.equal(before[:, :21], after[:, :21])
    assert not torch.equal(before[:, 21], after[:, 21])


def test_sequences_of_a_batch_do_not_share_a_cache() -> None:
    hidden, words, softmax = text(30, batch=3)
    ours = cache(12)
    together = ours.log_distribution(softmax, hidden, words, None)
    for row in range(3):
        own = slice(row, row + 1)
        alone = ours.log_distribution(softmax[own], hidden[own], words[own], None)
        torch.testing.assert_close(together[own], alone)


@pytest.mark.parametrize(
    ("remembered", "ramp", "fade"), [(0, 0, 0), (9, 0, 0), (0, 9, 0), (4, 9, 0), (4, 0, 6)]
)
def test_gradients_against_finite_differences(remembered: int, ramp: int, fade: int) -> None:
    hidden, words, softmax = text(25)
    ours = cache(9, ramp=ramp, fade=fade)
    past = ours.remember(None, hidden[:, :remembered], words[:, :remembered])
    memory = past if remembered else None
    hidden, words = hidden[:, remembered:], words[:, remembered:]
    log_softmax = of_words(softmax[:, remembered:], words)

    def loss(free_theta: Tensor, free_lam: Tensor, states: Tensor, logs: Tensor) -> Tensor:
        ours.free_theta, ours.free_lam = free_theta, free_lam  # type: ignore[assignment]
        return ours.log_probability(logs, states, words, memory)

    inputs = [p.detach().clone().requires_grad_() for p in (ours.free_theta, ours.free_lam)]
    inputs += [hidden.requires_grad_(), log_softmax.requires_grad_()]
    del ours.free_theta, ours.free_lam
    assert torch.autograd.gradcheck(loss, inputs)


def test_no_gradient_goes_into_what_is_remembered() -> None:
    hidden, words, _softmax = text(10)
    hidden.requires_grad_()
    ours = cache(9)
    memory = ours.remember(None, hidden * 2, words)
    assert not memory.states.requires_grad


def test_theta_and_lam_begin_where_they_are_told() -> None:
    for theta, lam in ((0.016, 0.07), (1e-4, 0.999), (30.0, 1e-3)):
        ours = Cache(CacheConfig(size=3, theta=theta, lam=lam))
        assert ours.theta.item() == pytest.approx(theta, rel=1e-4)
        assert ours.lam.item() == pytest.approx(lam, rel=1e-4)


def test_scores_of_any_size_stay_finite() -> None:
    """A sharp cache, far from any memory: no overflow, no NaN, and its gradient too."""
    hidden, words, softmax = text(40)
    for scale in (1e-3, 1.0, 1e3):
        states = (hidden * scale).float().requires_grad_()
        ours = Cache(CacheConfig(size=20, theta=2.0, lam=0.5))
        mixed = ours.log_probability(of_words(softmax, words).float(), states, words, None)
        mixed.sum().backward()
        assert bool(mixed.isfinite().all())
        assert states.grad is not None
        assert bool(states.grad.isfinite().all())
        assert ours.free_theta.grad is not None
        assert bool(ours.free_theta.grad.isfinite())


def model_with_cache(size: int = 10) -> LanguageModel:
    torch.manual_seed(1)
    return LanguageModel(TWO_BINS, CacheConfig(size=size, theta=0.3, lam=0.4)).eval()


@torch.inference_mode()
def test_a_models_next_word_is_its_distribution() -> None:
    """One word at a time, as in prediction, gives what a whole text at once gives."""
    model = model_with_cache()
    ids = torch.randint(60, (2, 40))
    inputs, words = ids[:, :-1], ids[:, 1:]
    hidden, _ = model(inputs)
    whole = model.log_distribution(hidden, words)
    torch.testing.assert_close(whole.exp().sum(-1), torch.ones(2, 39))
    torch.testing.assert_close(of_words(whole, words), model.log_probability(hidden, words))
    state, memory = None, None
    for time in range(39):
        step, state = model(inputs[:, time : time + 1], state)
        single = model.log_distribution(step, memory=memory)
        torch.testing.assert_close(single[:, 0], whole[:, time], rtol=1e-4, atol=1e-5)
        memory = model.remember(memory, step, words[:, time : time + 1])
    with pytest.raises(ValueError, match="need the words that follow"):
        model.log_distribution(hidden)


def test_the_loss_is_never_as_wide_as_the_vocabulary() -> None:
    """The largest tensor that the cache makes is a block of scores."""
    hidden, words, softmax = text(30)
    logs = of_words(softmax, words)
    with Sizes() as sizes:
        cache(12).log_probability(logs, hidden.requires_grad_(), words, None).sum().backward()
    assert sizes.seen
    assert max(sizes.seen) <= max(7 * (12 + 6), hidden.numel())


def test_without_a_cache_there_is_nothing_to_remember() -> None:
    model = LanguageModel(model_with_cache().config)
    assert model.remember(None, torch.zeros(1, 3, 16), torch.zeros(1, 3).long()) is None


def test_bfloat16_products_are_close_enough() -> None:
    """Under autocast: the loss and the gradients, against fp32 on the same numbers."""
    skip_without_bfloat16()
    torch.manual_seed(0)
    hidden = torch.randn(2, 90, 64)
    words, past = torch.randint(9, (2, 90)), torch.randint(9, (2, 40))
    logs = (torch.rand(2, 90) * 0.2).log()
    memory = Memory(states=torch.randn(2, 40, 64), words=past)
    results = []
    for enabled in (False, True):
        ours = Cache(CacheConfig(size=50, theta=0.05, lam=0.3))
        states = hidden.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = -ours.log_probability(logs, states, words, memory).mean()
        loss.backward()
        assert states.grad is not None
        assert ours.free_theta.grad is not None
        results.append((loss.detach(), states.grad, ours.free_theta.grad))
    (loss, d_hidden, d_theta), (other, d_other, d_other_theta) = results
    assert other.item() == pytest.approx(loss.item(), rel=2e-3)
    assert torch.cosine_similarity(d_hidden.flatten(), d_other.flatten(), dim=0) > 0.999
    assert d_other_theta.item() == pytest.approx(d_theta.item(), rel=0.05)
