"""The cache in training and evaluation: how deep it is, what is learned, what is reported."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.support.corpora import recurring_corpus
from tests.support.models import draw_weights
from tests.support.recipes import tiny_recipe
from tests.support.runs import train_lines
from torch import Tensor

from micronet_lm.config import CacheConfig
from micronet_lm.corpus import Corpus
from micronet_lm.model import Cache, LanguageModel, Memory
from micronet_lm.training import Batch, Plugin, Run, evaluate, token_losses, train
from micronet_lm.training.checkpoint import read_checkpoint


def depths_in_training(
    folder: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, **overrides: object
) -> list[int]:
    """How many activations the cache holds before each step of a run."""
    depths = []
    real = Cache.log_probability

    def spy(self: Cache, logs: Tensor, hidden: Tensor, words: Tensor, memory: Memory) -> Tensor:
        if hidden.requires_grad:
            depths.append(memory.words.shape[1] if memory is not None else 0)
            if memory is not None:
                assert memory.words.shape[0] == hidden.shape[0]  # one for each sequence
                assert not memory.states.requires_grad
        return real(self, logs, hidden, words, memory)

    monkeypatch.setattr(Cache, "log_probability", spy)
    recipe = tiny_recipe(corpus, **{"cache__size": 60, **overrides})
    train(Run(folder), recipe, corpus, quiet=True)
    return depths


def test_streams_fill_the_cache_window_by_window(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = (corpus.tokens("train") - 1) // 4 // 24  # steps until the streams begin again
    depths = depths_in_training(
        tmp_path, corpus, monkeypatch, train__sampling="stream", train__steps=turns + 2
    )
    assert depths == [0, 24, 48] + [60] * (turns - 3) + [0, 24]


def test_random_windows_have_no_past(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert depths_in_training(tmp_path, corpus, monkeypatch, train__steps=5) == [0] * 5


def test_theta_and_lam_are_learned_reported_and_saved(tmp_path: Path, corpus: Corpus) -> None:
    run = Run(tmp_path)
    start = {"cache__theta": 0.05, "cache__lam": 0.2, "train__warmup": 0, "train__log_every": 1}
    train(run, tiny_recipe(corpus, cache__size=60, **start), corpus, quiet=True)
    lines = train_lines(tmp_path)
    first, last = lines[0], lines[-1]
    # Adam's first step is as long as the learning rate, 0.01, however small the gradient.
    assert abs(first["cache_theta"] - 0.05) == pytest.approx(0.05 * 0.01, rel=0.1)
    assert abs(first["cache_lam"] - 0.2) == pytest.approx(0.2 * 0.8 * 0.01, rel=0.1)
    assert (first["cache_theta"], first["cache_lam"]) != (last["cache_theta"], last["cache_lam"])
    cache = run.model("last").cache
    assert cache is not None
    assert (cache.theta.item(), cache.lam.item()) == (last["cache_theta"], last["cache_lam"])
    assert cache.size == 60


def test_the_cache_helps_where_words_come_again(tmp_path: Path) -> None:
    """Every line has its own few words in no order: only who remembers can predict them."""
    corpus = recurring_corpus(tmp_path)
    run = Run(tmp_path / "run")
    recipe = tiny_recipe(corpus, cache__size=40, train__steps=60, train__evaluate_every=60)
    train(run, recipe, corpus, quiet=True)
    model, ids = run.model(), corpus.split("valid")
    with_cache = evaluate(model, ids).loss
    model.cache = None
    assert with_cache < evaluate(model, ids).loss - 0.3


def random_model(corpus: Corpus, size: int) -> LanguageModel:
    torch.manual_seed(0)
    config = CacheConfig(size=size, theta=0.2, lam=0.3)
    return draw_weights(LanguageModel(tiny_recipe(corpus).model, config), std=0.3).eval()


@pytest.mark.parametrize("size", [1, 50, 1000, 10_000])
def test_chunks_of_any_size_give_the_same_number(corpus: Corpus, size: int) -> None:
    ids = np.random.default_rng(0).integers(len(corpus.vocabulary), size=2500).astype(np.uint16)
    model = random_model(corpus, size)
    losses = [evaluate(model, ids, chunk=chunk).loss for chunk in (1, 97, 1500, 4032)]
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-6)


def test_evaluation_carries_the_cache_through_the_text(corpus: Corpus) -> None:
    """In chunks, against one mixed distribution over everything; and another size is another."""
    ids = np.random.default_rng(0).integers(len(corpus.vocabulary), size=400).astype(np.uint16)
    model = random_model(corpus, 150)
    words = torch.from_numpy(ids.astype(np.int64))[None]
    with torch.inference_mode():
        hidden, _ = model(words[:, :-1])
        whole = model.log_distribution(hidden, words[:, 1:])
    expected = -whole.gather(2, words[:, 1:, None])[0, :, 0]
    ours = torch.cat([losses for losses, _ in token_losses(model, ids, chunk=33)])
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
    assert model.cache is not None
    model.cache.size = 300
    other = torch.cat([losses for losses, _ in token_losses(model, ids, chunk=33)])
    torch.testing.assert_close(other[:151], ours[:151], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(other[151:], ours[151:], rtol=1e-3)


def test_the_hebbian_update_is_a_part_of_the_run(tmp_path: Path, corpus: Corpus) -> None:
    recipe = tiny_recipe(corpus, hebbian__gamma=0.05, hebbian__limit=40)
    train(Run(tmp_path / "with"), recipe, corpus, quiet=True)
    train(Run(tmp_path / "without"), tiny_recipe(corpus), corpus, quiet=True)
    saved = read_checkpoint(tmp_path / "with" / "last.safetensors").tensors
    other = read_checkpoint(tmp_path / "without" / "last.safetensors").tensors
    assert int(saved["plugin.hebbian.seen"].sum()) == 12 * 4 * 24
    assert "plugin.hebbian.seen" not in other
    assert not torch.equal(saved["model.embedding.tables.2"], other["model.embedding.tables.2"])
    lines = train_lines(tmp_path / "with")
    assert lines[0]["hebbian_rows"] > 0


def test_the_update_acts_after_the_optimizer_and_before_other_plugins(
    tmp_path: Path, corpus: Corpus
) -> None:
    """A first sighting turns the row to its activation: gradient descent cannot undo it after."""

    class Look(Plugin):
        def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
            words, counts = batch.targets.unique(return_counts=True)
            word = int(words[(words < 20) & (counts == 1)][0])
            state = hidden[batch.targets == word][0]
            cosine = torch.cosine_similarity(state.float(), model.tables[0][word], dim=0)
            assert cosine.item() == pytest.approx(1, abs=1e-4)
            self.looked = True

    look = Look()
    recipe = tiny_recipe(corpus, hebbian__gamma=0.05, train__steps=1, train__warmup=0)
    train(Run(tmp_path), recipe, corpus, plugins=[look], quiet=True)
    assert look.looked
