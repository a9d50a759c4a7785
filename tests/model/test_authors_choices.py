"""What the authors' code does and the paper does not say, as keys: √d, and more dropout."""

import math
from pathlib import Path

import pytest
import torch
from tests.support.models import draw_weights
from tests.support.recipes import tiny_recipe
from torch import nn

from micronet_lm.cli.main import main
from micronet_lm.config import CacheConfig
from micronet_lm.corpus import Corpus
from micronet_lm.model import LanguageModel
from micronet_lm.model.fingerprint import fingerprint_of
from micronet_lm.training import Run, train


def models(corpus: Corpus, **keys: object) -> tuple[LanguageModel, LanguageModel]:
    """The tiny model without and with some keys, the same weights."""
    found = []
    for own in ({}, keys):
        torch.manual_seed(0)
        model = LanguageModel(tiny_recipe(corpus, **own).model)
        found.append(draw_weights(model, std=0.4))
    return found[0], found[1]


def test_scaled_embeddings_are_those_of_larger_tables(corpus: Corpus) -> None:
    plain, scaled = models(corpus, model__scale_embedding=True)
    ids = torch.arange(40).view(2, 20)
    assert not torch.allclose(plain(ids)[0], scaled(ids)[0])
    factor = math.sqrt(plain.config.width)
    with torch.no_grad():
        plain.embedding.tables[0].mul_(factor)
        for projection in plain.embedding.projections[1:]:
            assert isinstance(projection, nn.Linear)
            projection.weight.mul_(factor)
    assert torch.allclose(plain(ids)[0], scaled(ids)[0], atol=1e-5)
    assert fingerprint_of(plain) != fingerprint_of(scaled)


def dropouts(model: LanguageModel) -> list[float]:
    inner = [block.get_submodule("inner_dropout") for block in model.blocks]
    return [own.p for own in inner if isinstance(own, nn.Dropout)]


def test_the_authors_dropout_is_after_the_relu_and_the_last_layer_too(corpus: Corpus) -> None:
    keys = {"model__dropout": 0.5}
    few = LanguageModel(tiny_recipe(corpus, **keys).model)
    more = LanguageModel(tiny_recipe(corpus, model__dropout_places="code", **keys).model)
    assert dropouts(few) == [0.0, 0.0]
    assert few.last_dropout.p == 0.0
    assert dropouts(more) == [0.5, 0.5]
    hidden = more.train()(torch.arange(20).view(1, 20))[0]
    assert 0.3 < float((hidden == 0).float().mean()) < 0.7
    hidden = few.train()(torch.arange(20).view(1, 20))[0]
    assert float((hidden == 0).float().mean()) < 0.2


def test_a_cache_may_keep_its_first_values(corpus: Corpus, tmp_path: Path) -> None:
    cache = CacheConfig(size=30, theta=0.024, lam=0.068, trained=False)
    recipe = tiny_recipe(corpus, train__steps=4)
    own = recipe.model_copy(update={"cache": cache})
    train(Run(tmp_path / "run"), own, corpus, quiet=True)
    kept = Run.open(tmp_path / "run").model().cache
    assert kept is not None
    assert (kept.theta.item(), kept.lam.item()) == pytest.approx((0.024, 0.068), rel=1e-6)


def test_a_scaled_embedding_is_not_packed(
    corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_recipe(corpus, train__steps=2, train__warmup=1, model__scale_embedding=True)
    train(Run(tmp_path / "run"), recipe, corpus, quiet=True)
    assert main(["pack", str(tmp_path / "run"), "-o", str(tmp_path / "x.safetensors")]) == 1
    assert "a factor that packed files do not have" in capsys.readouterr().err
    assert not (tmp_path / "x.safetensors").exists()
