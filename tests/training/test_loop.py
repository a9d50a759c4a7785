"""The loop: it learns, reports, plugs in techniques, stops on nonsense and on request."""

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from tests.training.conftest import tiny_recipe
from torch import Tensor

from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError, NonFiniteLossError, RunError
from micronet_lm.model import LanguageModel
from micronet_lm.training import Batch, Plugin, Run, evaluate, next_word_loss, train
from micronet_lm.training.checkpoint import read_checkpoint
from micronet_lm.training.metrics import read_metrics
from micronet_lm.training.precision import autocast


def same_tensors(one: Path, other: Path) -> bool:
    first, second = read_checkpoint(one).tensors, read_checkpoint(other).tensors
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def test_it_learns_and_keeps_the_best_model(tmp_path: Path, corpus: Corpus) -> None:
    run = Run(tmp_path)
    recipe = tiny_recipe(corpus, train__steps=60, train__evaluate_every=20)
    run.begin(recipe, corpus)
    outcome = train(run, recipe, corpus, quiet=True)
    assert outcome.finished
    assert outcome.step == 60
    lines = read_metrics(tmp_path / "metrics.jsonl")
    valid = [line for line in lines if line["kind"] == "valid"]
    assert [line["step"] for line in valid] == [20, 40, 60]
    assert valid[-1]["loss"] < valid[0]["loss"] < 5.3  # 5.3 = log 200, knowing nothing
    assert outcome.best_loss == min(line["loss"] for line in valid)
    # The file holds the model that had that loss.
    assert evaluate(run.model(), corpus.split("valid")).loss == outcome.best_loss
    trained = [line for line in lines if line["kind"] == "train"]
    assert [line["step"] for line in trained] == list(range(2, 61, 2))
    assert {"loss", "perplexity", "learning_rate", "gradient_norm", "tokens_per_second"} <= set(
        trained[0]
    )
    assert list((tmp_path / "tensorboard").iterdir())


def test_same_seed_same_bits_other_seed_other_bits(tmp_path: Path, corpus: Corpus) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(
            Run(tmp_path / name),
            tiny_recipe(corpus, train__seed=seed, model__dropout=0.2),
            corpus,
            quiet=True,
        )
    assert same_tensors(tmp_path / "a/last.safetensors", tmp_path / "b/last.safetensors")
    assert not same_tensors(tmp_path / "a/last.safetensors", tmp_path / "c/last.safetensors")


def test_accumulation_gives_the_same_gradients(tmp_path: Path, corpus: Corpus) -> None:
    losses = []
    for parts in (1, 2, 4):
        recipe = tiny_recipe(
            corpus, train__accumulate=parts, train__precision="float32", train__log_every=1
        )
        train(Run(tmp_path / str(parts)), recipe, corpus, quiet=True)
        lines = read_metrics(tmp_path / str(parts) / "metrics.jsonl")
        losses.append([line["loss"] for line in lines if line["kind"] == "train"])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[2] == pytest.approx(losses[0], rel=1e-4)


def test_streams_carry_the_state_along(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    real = LanguageModel.forward

    def spy(self: LanguageModel, ids: Tensor, state: object = None) -> object:
        if self.training:
            seen.append(0 if state is None else state.seen)  # type: ignore[attr-defined]
        return real(self, ids, state)  # type: ignore[arg-type]

    monkeypatch.setattr(LanguageModel, "forward", spy)
    train(
        Run(tmp_path / "stream"),
        tiny_recipe(corpus, train__sampling="stream", train__steps=5),
        corpus,
        quiet=True,
    )
    assert seen == [0, 8, 8, 8, 8]
    seen.clear()
    train(Run(tmp_path / "random"), tiny_recipe(corpus, train__steps=5), corpus, quiet=True)
    assert seen == [0] * 5


class Counter(Plugin):
    """Counts tokens, nails one weight, and stops the run by a signal if asked."""

    name = "counter"

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.tokens = torch.zeros((), dtype=torch.long)
        self.interrupt_at = interrupt_at
        self.started_at: int | None = None

    def start(self, model: LanguageModel, step: int) -> None:
        self.started_at = step

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        assert hidden.shape == (*batch.inputs.shape, model.config.width)
        assert not hidden.requires_grad
        self.tokens += batch.targets.numel()
        with torch.no_grad():
            model.embedding.tables[0][0, 0] = 0.25
        if batch.step + 1 == self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)

    def tensors(self) -> dict[str, Tensor]:
        return {"tokens": self.tokens}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.tokens = tensors["tokens"]


@pytest.mark.parametrize("sampling", ["random", "stream"])
def test_ctrl_c_saves_and_the_run_goes_on_to_the_same_bits(
    tmp_path: Path, corpus: Corpus, sampling: str
) -> None:
    recipe = tiny_recipe(corpus, train__sampling=sampling, model__dropout=0.1)
    whole = Run(tmp_path / "whole")
    train(whole, recipe, corpus, plugins=[Counter()], quiet=True)

    parts = Run(tmp_path / "parts")
    outcome = train(parts, recipe, corpus, plugins=[Counter(interrupt_at=5)], quiet=True)
    assert (outcome.finished, outcome.step) == (False, 5)
    counter = Counter()
    outcome = train(parts, recipe, corpus, plugins=[counter], quiet=True)
    assert (outcome.finished, outcome.step) == (True, 12)
    assert counter.started_at == 5
    assert int(counter.tokens) == 12 * 4 * 24
    assert same_tensors(whole.last, parts.last)
    assert same_tensors(whole.best, parts.best)
    assert float(read_checkpoint(parts.last).tensors["model.embedding.tables.0"][0, 0]) == 0.25
    drop = {"tokens_per_second", "seconds"}
    one, other = (
        [
            {k: v for k, v in line.items() if k not in drop}
            for line in read_metrics(r / "metrics.jsonl")
        ]
        for r in (whole.path, parts.path)
    )
    assert one == other


def test_signal_handlers_are_given_back(tmp_path: Path, corpus: Corpus) -> None:
    before = signal.getsignal(signal.SIGINT)
    train(Run(tmp_path), tiny_recipe(corpus, train__steps=3), corpus, quiet=True)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_divergence_names_step_rate_and_checkpoint(
    tmp_path: Path, corpus: Corpus, where: str
) -> None:
    def diverging(model: LanguageModel, hidden: Tensor, batch: Batch) -> Tensor:
        loss = next_word_loss(model, hidden, batch)
        if batch.step < 7:
            return loss
        # √0 has a finite value and an infinite slope.
        return loss * float("nan") if where == "loss" else loss + (loss - loss.detach()).sqrt()

    run = Run(tmp_path)
    recipe = tiny_recipe(corpus)
    with pytest.raises(NonFiniteLossError) as caught:
        train(run, recipe, corpus, objective=diverging, quiet=True)
    message = str(caught.value)
    assert message.startswith(
        "step 8: the loss (nan)" if where == "loss" else "step 8: the gradient"
    )
    assert "learning rate 0.00" in message
    assert "last.safetensors" in message
    saved = read_checkpoint(run.last)
    assert saved.progress.step == 6
    assert all(bool(t.isfinite().all()) for t in saved.tensors.values())


def test_batch_must_be_shared_evenly(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    from micronet_lm.training.processes import Processes
    from micronet_lm.training.trainer import Trainer

    three = Processes(rank=0, count=3, device=torch.device("cpu"))
    with pytest.raises(ConfigError, match=r"train\.batch 4 cannot be shared by 3 processes"):
        Trainer(Run(tmp_path), tiny_recipe(corpus), corpus, three, next_word_loss, [])


def test_two_runs_do_not_share_a_folder(tmp_path: Path, corpus: Corpus) -> None:
    run = Run(tmp_path)
    with run.locked(), pytest.raises(RunError, match="another process is training"):
        train(run, tiny_recipe(corpus), corpus, quiet=True)


def test_a_run_finds_its_corpus_and_refuses_another(tmp_path: Path, corpus: Corpus) -> None:
    run = Run(tmp_path / "run")
    run.begin(tiny_recipe(corpus), corpus)
    assert run.corpus().fingerprint == corpus.fingerprint
    reference = tmp_path / "run" / "corpus.json"
    reference.write_text(json.dumps({"path": str(corpus.path), "fingerprint": "0" * 64}))
    with pytest.raises(RunError, match="not the corpus of this run"):
        run.corpus()
    reference.write_text(json.dumps({"path": "gone", "fingerprint": "0" * 64}))
    with pytest.raises(RunError, match="no longer at"):
        run.corpus()


def test_bfloat16_products_train_as_well(tmp_path: Path, corpus: Corpus) -> None:
    outcomes = {}
    for precision in ("float32", "bfloat16"):
        recipe = tiny_recipe(corpus, train__precision=precision, train__steps=40)
        outcome = train(Run(tmp_path / precision), recipe, corpus, quiet=True)
        outcomes[precision] = outcome.best_loss
        weights = read_checkpoint(Run(tmp_path / precision).best).tensors.values()
        assert {weight.dtype for weight in weights} == {torch.float32}
    assert outcomes["bfloat16"] != outcomes["float32"]
    assert outcomes["bfloat16"] == pytest.approx(outcomes["float32"], rel=0.02)


def test_auto_takes_bfloat16_where_the_hardware_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    for capability in (True, False):
        monkeypatch.setattr(
            torch.cpu, "get_capabilities", lambda has=capability: {"avx512_bf16": has}
        )
        with autocast("auto", cpu):
            product = torch.ones(2, 2) @ torch.ones(2, 2)
        assert product.dtype == (torch.bfloat16 if capability else torch.float32)
