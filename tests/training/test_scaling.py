"""fp16 with a scaled loss: really trained on the CPU, with steps left out, resumed to the bit."""

from pathlib import Path

import pytest
import torch
from tests.support.recipes import tiny_recipe
from tests.support.runs import train_lines

from micronet_lm.config import HebbianConfig, TrainConfig
from micronet_lm.corpus import Corpus
from micronet_lm.errors import NonFiniteLossError
from micronet_lm.training import Run, next_word_loss, train
from micronet_lm.training.checkpoint import read_checkpoint
from micronet_lm.training.hebbian import Hebbian
from micronet_lm.training.optimizer import Optimizer
from micronet_lm.training.precision import FLOAT32, LossScaler, Products, choose_products, scaling
from micronet_lm.training.precision import products as products_module
from micronet_lm.training.processes import Processes
from micronet_lm.training.trainer import Trainer

HALF = Products(precision="float16")
CPU = torch.device("cpu")


def test_the_scale_falls_at_once_and_rises_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "GOOD_STEPS", 3)
    scaler = LossScaler(HALF)
    assert float(scaler.scaled(torch.tensor(2.0))) == 2 * scaling.FIRST
    assert scaler.skip()
    assert scaler.numbers() == {"loss_scale": scaling.FIRST / 2, "skipped_steps": 1.0}
    for _ in range(3):
        scaler.keep()
    assert scaler.numbers()["loss_scale"] == scaling.FIRST
    other = LossScaler(HALF)
    other.load(scaler.tensors())
    assert other.numbers() == scaler.numbers()


def test_other_precisions_have_none() -> None:
    scaler, loss = LossScaler(FLOAT32), torch.tensor(2.0)
    assert scaler.scaled(loss) is loss
    assert not scaler.skip()
    assert scaler.tensors() == {}
    assert scaler.numbers() == {}


def test_gradients_are_unscaled_before_they_are_clipped() -> None:
    norms = []
    for scaler in (None, LossScaler(HALF)):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        loss = model(torch.ones(1, 3)).square().sum()
        (loss if scaler is None else scaler.scaled(loss)).backward()
        norms.append(Optimizer(model, TrainConfig()).step(0.1, scaler))
    assert norms[0] == norms[1] > 0.25


def test_a_run_in_fp16_resumes_to_the_bit(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scale has changed both ways by then: it is in the checkpoint."""
    monkeypatch.setattr(scaling, "FIRST", 2.0**34)
    monkeypatch.setattr(scaling, "GOOD_STEPS", 5)
    steps = 24
    more = {"cache__size": 60, "hebbian__limit": 50, "train__precision": "float16"}
    recipe = tiny_recipe(corpus, **more, train__steps=steps)
    whole, parts = Run(tmp_path / "whole"), Run(tmp_path / "parts")
    train(whole, recipe, corpus, quiet=True)
    alone = Processes(rank=0, count=1, device=CPU)
    parts.path.mkdir()
    for stop in (17, steps):  # the second begins with what the first has saved
        hebbian = Hebbian(recipe.hebbian or HebbianConfig())
        trainer = Trainer(parts, recipe, corpus, alone, next_word_loss, [hebbian], products=HALF)
        while trainer.progress.step < stop:
            trainer.step()
        trainer.save()
    ours, theirs = (read_checkpoint(run.last).tensors for run in (whole, parts))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    lines = train_lines(whole.path)
    scales = [line["loss_scale"] for line in lines]
    assert lines[-1]["skipped_steps"] > 0
    assert min(scales) < scales[0]
    assert "scaler.state" in ours
    losses = [line["loss"] for line in lines]
    assert losses[-1] < losses[0]


def test_a_step_that_is_left_out_changes_no_weight(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "FIRST", 2.0**60)
    alone = Processes(rank=0, count=1, device=CPU)
    recipe = tiny_recipe(corpus)
    trainer = Trainer(Run(tmp_path), recipe, corpus, alone, next_word_loss, products=HALF)
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    told = trainer.step()
    assert (told["loss_scale"], told["skipped_steps"]) == (2.0**59, 1.0)
    for name, parameter in trainer.model.named_parameters():
        assert torch.equal(parameter, before[name])
        assert parameter.grad is None
    assert trainer.progress.step == 1


def test_where_no_scale_helps_training_stops(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "FIRST", 2.0**60)
    monkeypatch.setattr(scaling, "SMALLEST", 2.0**59)
    recipe = tiny_recipe(corpus, train__precision="float16")
    with pytest.raises(NonFiniteLossError, match="step 2: the gradient is not finite"):
        train(Run(tmp_path), recipe, corpus, quiet=True)


@pytest.mark.parametrize(("native", "precision"), [(True, "bfloat16"), (False, "float16")])
def test_a_gpu_gets_the_precision_that_it_multiplies(
    monkeypatch: pytest.MonkeyPatch, native: bool, precision: str
) -> None:
    monkeypatch.setattr(products_module, "multiplies_bfloat16", lambda: native)
    chosen = choose_products("auto", torch.device("cuda", 0))
    assert chosen.precision == precision
    assert Products.from_json(chosen.as_json()) == chosen
    assert choose_products("float32", torch.device("cuda", 0)).precision == "float32"
