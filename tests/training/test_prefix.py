"""A prefix without gradients fills keys, values and cache before a random window."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.support.models import draw_weights
from tests.support.recipes import tiny_recipe
from tests.support.runs import same_tensors

from micronet_lm.config import load_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.corpus.sampling import Sampler
from micronet_lm.errors import ConfigError, CorpusError
from micronet_lm.model import LanguageModel
from micronet_lm.training import Batch, Run, next_word_loss, train
from micronet_lm.training.trainer import Trainer, _Loss

IDS = np.arange(2_000, dtype=np.uint16)


def test_the_prefix_is_the_text_before_the_window() -> None:
    one = Sampler(IDS, sampling="random", batch=4, window=100, seed=0, prefix=150)
    for step in range(20):
        rows = one.rows(step)
        assert rows.prefix.shape == (4, 150)
        assert (rows.prefix[:, -1] + 1 == rows.inputs[:, 0]).all()  # the ids count up
        assert (np.diff(rows.prefix) == 1).all()
    plain = Sampler(IDS, sampling="random", batch=4, window=100, seed=0)
    assert plain.rows(3).prefix.shape == (4, 0)


def test_a_text_must_hold_prefix_and_window() -> None:
    with pytest.raises(CorpusError, match=r"after a prefix of 1,900 need 2,100: .*train\.prefix"):
        Sampler(IDS, sampling="random", batch=4, window=100, seed=0, prefix=1_900)


def test_the_window_continues_the_prefix_without_gradients(corpus: Corpus) -> None:
    recipe = tiny_recipe(corpus, cache__size=30)
    torch.manual_seed(0)
    model = draw_weights(LanguageModel(recipe.model, recipe.cache), std=0.4)
    ids = torch.randint(len(corpus.vocabulary), (2, 65))
    prefix, window, targets = ids[:, :40], ids[:, 40:-1], ids[:, 41:]
    batch = Batch(
        inputs=window, targets=targets, starts=torch.zeros(2), step=0, fresh=True, prefix=prefix
    )
    loss, hidden, stream = _Loss(model, next_word_loss, carry=False)(batch, None)
    assert stream is None
    # The same tokens read in one piece.
    whole, _ = model(ids[:, :-1])
    assert torch.allclose(hidden, whole[:, 40:], atol=1e-5)
    own = model.log_probability(whole, ids[:, 1:])[:, 40:]
    assert loss.total.item() == pytest.approx(-own.mean().item(), abs=1e-5)
    # Keys, values and cache are as full as they can be, and constants.
    before = _Loss(model, next_word_loss, carry=False)._read(prefix, window)
    assert before.memory is not None
    assert before.memory.states.shape[1] == 30
    assert torch.equal(before.memory.words[:, -1], window[:, 0])
    assert before.state.seen == recipe.model.context - 1
    held = [*before.state.keys, *before.state.values, before.memory.states]
    assert not any(tensor.requires_grad for tensor in held)


def test_a_run_with_a_prefix_trains_and_resumes_to_the_same_bits(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"cache__size": 30, "train__steps": 6, "train__accumulate": 2}
    for name, prefix in (("whole", 30), ("plain", 0)):
        recipe = tiny_recipe(corpus, train__prefix=prefix, **keys)
        train(Run(tmp_path / name), recipe, corpus, quiet=True)
    whole, plain = (Run(tmp_path / name).last.read_bytes() for name in ("whole", "plain"))
    assert whole != plain
    recipe, real = tiny_recipe(corpus, train__prefix=30, **keys), Trainer.step

    def step(self: Trainer) -> dict[str, float]:
        if self.progress.step == 4:
            raise KeyboardInterrupt
        return real(self)

    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(KeyboardInterrupt):
        train(Run(tmp_path / "again"), recipe, corpus, quiet=True)
    monkeypatch.undo()
    train(Run(tmp_path / "again"), recipe, corpus, quiet=True)
    assert same_tensors(Run(tmp_path / "again").last, Run(tmp_path / "whole").last)


@pytest.mark.parametrize(
    "other", [{"train.sampling": "stream"}, {"train.beginnings": 0.5}], ids=["stream", "beginnings"]
)
def test_only_random_windows_have_a_prefix(other: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="prefix 30 is for random windows in the middle"):
        load_recipe("demo", {"train.prefix": 30, **other})
