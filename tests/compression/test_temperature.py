"""A temperature that is folded into the weights is one of the logits."""

import copy

import numpy as np
import pytest
import torch
from tests.support.corpora import recurring_corpus
from tests.support.recipes import tiny_recipe
from tests.support.shapes import EVEN_BINS, changed
from torch.nn import functional as F

from micronet_lm.cli.main import main
from micronet_lm.compression import Surface
from micronet_lm.compression.temperature import fold_temperature, search_temperature
from micronet_lm.config import CacheConfig
from micronet_lm.corpus import Corpus
from micronet_lm.errors import UsageError
from micronet_lm.model import Cache, LanguageModel
from micronet_lm.training import Run, evaluate, train


@pytest.fixture(scope="module", name="corpus")
def _corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return recurring_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module", name="run")
def _run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("runs") / "plain")
    train(run, tiny_recipe(corpus, train__steps=40, train__evaluate_every=40), corpus, quiet=True)
    return run


@pytest.mark.parametrize(
    "widths", [(16, 8, 4), (12, 8, 4)]
)  # the first bin without and with a projection
def test_logits_are_divided(widths: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = LanguageModel(changed(EVEN_BINS, embedding_widths=widths)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    model.cache = Cache(CacheConfig(size=10, theta=0.3, lam=0.2))
    folded = copy.deepcopy(model)
    fold_temperature(folded, 1.7)
    ids = torch.randint(60, (1, 30))
    with torch.inference_mode():
        hidden, cooled = model(ids)[0], folded(ids)[0]
        torch.testing.assert_close(cooled, hidden * 1.7**-0.5, rtol=1e-3, atol=1e-3)
        # The first bin by hand: its words, and one entry for each other bin.
        table = torch.cat([model.tables[0], model.softmax.tail_weight])
        bias = torch.cat([model.softmax.biases[0], model.softmax.tail_bias])
        first = model.softmax.projections[0](hidden)
        expected = F.log_softmax((first @ table.T + bias) / 1.7, dim=-1)[..., :20]
        words = torch.arange(20).expand(1, 30, 20)
        found = torch.stack(
            [
                folded.softmax.log_probability(cooled[0], words[0, :, w], folded.tables)
                for w in range(20)
            ],
            dim=-1,
        )
        torch.testing.assert_close(found, expected[0], rtol=1e-3, atol=1e-3)
    assert folded.cache is not None
    assert folded.cache.theta.item() == pytest.approx(0.3 * 1.7, rel=1e-5)


def test_the_best_temperature_is_found(run: Run, corpus: Corpus) -> None:
    model, ids = run.model(), corpus.split("valid")
    surface = Surface(model, ids)
    found = search_temperature(model, surface, confirm=False)
    losses = {}
    for factor in (0.9, 1.0, 1.1):
        cooled = run.model()
        fold_temperature(cooled, found * factor)
        losses[factor] = evaluate(cooled, ids).loss
    assert losses[1.0] == min(losses.values())
    # A model that is made too sure is cooled down again by as much.
    sure = run.model()
    fold_temperature(sure, 0.8 * found)
    again = search_temperature(sure, Surface(sure, ids), confirm=False)
    assert again == pytest.approx(1 / 0.8, rel=0.03)


def test_another_half_may_refuse_it(
    run: Run, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = run.model()
    surface = Surface(model, np.asarray(corpus.split("valid")))
    monkeypatch.setattr(
        Surface, "softmax_loss", lambda self, _, scale: scale if self._begin == 0 else 1 / scale
    )
    assert search_temperature(model, surface, confirm=True) == 1.0
    assert search_temperature(model, surface, confirm=False) > 1.9


def test_a_searched_run_has_it(
    run: Run, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run.path / "cooled"
    words = ["search-cache", str(run.path), "--size", "60", "--temperature", "--out", str(out)]
    assert main(words) == 0
    assert "temperature" in capsys.readouterr().err
    before, after = (evaluate(own.model(), corpus.split("valid")).loss for own in (run, Run(out)))
    assert after < before


def test_integers_are_refused(run: Run) -> None:
    model = run.model()
    model.quantizers = object()  # type: ignore[assignment]
    with pytest.raises(UsageError, match="before quantization"):
        fold_temperature(model, 1.2)
