"""The adaptive softmax against its definition, and its sums."""

import pytest
import torch
from tests.support.shapes import SOFTMAXES, softmax_shape

from micronet_lm.model import LanguageModel
from micronet_lm.model.logsumexp import linear_logsumexp


@pytest.fixture(params=SOFTMAXES, name="model")
def _model(request: pytest.FixtureRequest) -> LanguageModel:
    torch.manual_seed(0)
    model = LanguageModel(SOFTMAXES[request.param]).double()
    for parameter in model.parameters():  # large, so that no mistake hides
        torch.nn.init.normal_(parameter)
    return model


def test_probabilities_sum_to_one(model: LanguageModel) -> None:
    hidden = torch.randn(2, 25, 16, dtype=torch.float64)
    total = model.log_distribution(hidden).exp().sum(dim=-1)
    torch.testing.assert_close(total, torch.ones_like(total))


def test_targets_agree_with_the_whole_distribution(model: LanguageModel) -> None:
    hidden = torch.randn(4, 25, 16, dtype=torch.float64)
    words = torch.randperm(100).view(4, 25)
    ours = model.log_probability(hidden, words)
    theirs = model.log_distribution(hidden).gather(2, words[..., None]).squeeze(2)
    torch.testing.assert_close(ours, theirs)


def test_a_tail_word_is_its_bin_times_itself(model: LanguageModel) -> None:
    """P(w) = P(bin) · P(w | bin), written out from the parameters."""
    bounds = model.config.bounds
    if len(bounds) == 2:
        return
    hidden = torch.randn(1, 16, dtype=torch.float64)
    head, tables = model.softmax, model.embedding.tables
    first = head.projections[0](hidden)[0]
    entries = torch.cat(
        [tables[0] @ first + head.biases[0], head.tail_weight @ first + head.tail_bias]
    )
    bin_probability = entries.softmax(0)[bounds[1] :]
    low, high = bounds[-2:]
    within = (tables[-1] @ head.projections[-1](hidden)[0] + head.biases[-1]).softmax(0)
    expected = bin_probability[-1] * within[3]
    ours = model.log_probability(hidden[None], torch.tensor([[low + 3]])).exp()
    torch.testing.assert_close(ours[0, 0], expected)
    assert high == 100


def test_embedding_is_the_projected_row_of_each_word(model: LanguageModel) -> None:
    ids = torch.randint(100, (3, 7))
    embedded = model.embedding(ids)
    bounds = model.config.bounds
    for place in ((0, 0), (1, 3), (2, 6)):
        word = int(ids[place])
        number = sum(word >= bound for bound in bounds[1:])
        row = model.embedding.tables[number][word - bounds[number]]
        torch.testing.assert_close(embedded[place], model.embedding.projections[number](row))


def test_unused_tail_bins_cost_no_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the tokens whose word lies in a tail bin meet that bin's table."""
    model = LanguageModel(softmax_shape((10, 30), (16, 8, 4)))
    seen = []

    def spy(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        seen.append((len(x), len(weight)))
        return linear_logsumexp(x, weight, bias)

    monkeypatch.setattr("micronet_lm.model.adaptive.linear_logsumexp", spy)
    model.log_probability(torch.randn(1, 6, 16), torch.tensor([[0, 1, 9, 10, 29, 99]]))
    assert seen == [(6, 12), (2, 20), (1, 70)]


def test_every_weight_has_a_gradient_even_when_no_word_needs_its_bin(model: LanguageModel) -> None:
    hidden, _ = model(torch.zeros(1, 3, dtype=torch.long))
    model.log_probability(hidden, torch.zeros(1, 3, dtype=torch.long)).sum().backward()
    unused = [name for name, p in model.named_parameters() if p.grad is None]
    assert unused == []


def test_biases_start_at_the_words_frequencies(model: LanguageModel) -> None:
    counts = [1000 // (rank + 1) for rank in range(100)]
    model.softmax.start_from_frequencies(counts)
    for table in (*model.embedding.tables, model.softmax.tail_weight):
        torch.nn.init.zeros_(table)
    shares = torch.tensor(counts, dtype=torch.float64) + 1
    ours = model.log_distribution(torch.randn(1, 1, 16, dtype=torch.float64)).exp()
    torch.testing.assert_close(ours[0, 0], shares / shares.sum())
