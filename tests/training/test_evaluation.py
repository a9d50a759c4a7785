"""The perplexity contract."""

import math

import numpy as np
import pytest
import torch
from tests.support.models import draw_weights
from tests.support.recipes import tiny_recipe

from micronet_lm.corpus import Corpus
from micronet_lm.errors import CorpusError
from micronet_lm.model import LanguageModel
from micronet_lm.training import evaluate
from micronet_lm.training.evaluation import token_losses


@pytest.fixture(name="model", scope="module")
def _model(corpus: Corpus) -> LanguageModel:
    torch.manual_seed(0)
    model = LanguageModel(tiny_recipe(corpus).model)
    draw_weights(model, std=0.3)
    return model


@pytest.fixture(name="ids", scope="module")
def _ids(corpus: Corpus) -> "np.ndarray[tuple[int], np.dtype[np.uint16]]":
    return np.random.default_rng(0).integers(len(corpus.vocabulary), size=5000).astype(np.uint16)


def test_chunks_of_any_size_give_the_same_number(
    model: LanguageModel, ids: "np.ndarray[tuple[int], np.dtype[np.uint16]]"
) -> None:
    losses = [evaluate(model, ids, chunk=chunk).loss for chunk in (1, 97, 4032, 10_000)]
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-6)


def test_every_token_after_the_first_counts_once(
    model: LanguageModel, ids: "np.ndarray[tuple[int], np.dtype[np.uint16]]"
) -> None:
    """Against the definition: one forward pass over everything, probabilities of all words."""
    words = torch.from_numpy(ids[:600].astype(np.int64))
    model.eval()
    with torch.no_grad():
        hidden, _ = model(words[None, :-1])
        expected = -model.log_distribution(hidden)[0].gather(1, words[1:, None]).squeeze(1)
    ours = torch.cat([losses for losses, _ in token_losses(model, ids[:600], chunk=50)])
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
    result = evaluate(model, ids[:600], chunk=77)
    assert result.tokens == 599
    assert result.perplexity == pytest.approx(math.exp(float(expected.mean())), rel=1e-5)
    assert result.bits_per_token == pytest.approx(float(expected.mean()) / math.log(2), rel=1e-5)


def test_bins_add_up(
    model: LanguageModel, ids: "np.ndarray[tuple[int], np.dtype[np.uint16]]"
) -> None:
    result = evaluate(model, ids)
    assert [part.first for part in result.bins] == [0, 20, 60]
    assert sum(part.tokens for part in result.bins) == result.tokens
    total = sum(part.tokens * (part.loss or 0.0) for part in result.bins)
    assert total / result.tokens == pytest.approx(result.loss)
    assert result.bins[0].tokens == int((ids[1:] < 20).sum())


def test_an_empty_bin_has_no_loss(model: LanguageModel) -> None:
    result = evaluate(model, np.zeros(10, dtype=np.uint16))
    assert [part.loss is None for part in result.bins] == [False, True, True]


def test_evaluation_leaves_the_mode_alone_and_ignores_dropout(corpus: Corpus) -> None:
    torch.manual_seed(0)
    model = LanguageModel(tiny_recipe(corpus, model__dropout=0.5).model).train()
    ids = corpus.split("valid")[:200]
    assert evaluate(model, ids).loss == evaluate(model, ids).loss
    assert model.training


def test_nothing_to_predict(model: LanguageModel) -> None:
    with pytest.raises(CorpusError, match="1 tokens has nothing to predict"):
        evaluate(model, np.zeros(1, dtype=np.uint16))
