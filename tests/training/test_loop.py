"""The loop: it learns, reports, plugs in techniques, stops on nonsense and on request."""

import json
import math
import os
import re
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from tests.support.bfloat16 import skip_without_bfloat16
from tests.support.recipes import tiny_recipe
from tests.support.runs import same_tensors, train_lines
from torch import Tensor

from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError, CorpusError, NonFiniteLossError, RunError
from micronet_lm.model import LanguageModel, Memory
from micronet_lm.training import Batch, Loss, Plugin, Run, evaluate, next_word_loss, train
from micronet_lm.training.checkpoint import read_checkpoint
from micronet_lm.training.metrics import read_metrics
from micronet_lm.training.processes import Processes
from micronet_lm.training.trainer import Trainer


def test_it_learns_and_keeps_the_best_model(tmp_path: Path, corpus: Corpus) -> None:
    run = Run(tmp_path)
    recipe = tiny_recipe(corpus, train__steps=150, train__evaluate_every=50)
    outcome = train(run, recipe, corpus, quiet=True)
    assert outcome.finished
    assert outcome.step == 150
    lines = read_metrics(tmp_path / "metrics.jsonl")
    valid = [line for line in lines if line["kind"] == "valid"]
    assert [line["step"] for line in valid] == [50, 100, 150]
    assert valid[-1]["loss"] < valid[0]["loss"]
    counts = torch.tensor(corpus.vocabulary.counts, dtype=torch.float64)
    words = torch.from_numpy(corpus.split("valid").astype("int64"))
    by_frequency = -float((counts / counts.sum()).log()[words].mean())
    assert valid[-1]["loss"] < by_frequency - 0.5  # it learned more than how often words occur
    assert outcome.best_loss == min(line["loss"] for line in valid)
    # The file holds the model that had that loss.
    assert evaluate(run.model(), corpus.split("valid")).loss == outcome.best_loss
    trained = [line for line in lines if line["kind"] == "train"]
    assert [line["step"] for line in trained] == list(range(2, 151, 2))
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


@pytest.mark.parametrize("sampling", ["random", "stream"])
def test_accumulation_gives_the_same_gradients(
    tmp_path: Path, corpus: Corpus, sampling: str
) -> None:
    losses = []
    for parts in (1, 2, 4):
        recipe = tiny_recipe(
            corpus,
            train__accumulate=parts,
            train__precision="float32",
            train__log_every=1,
            train__sampling=sampling,
        )
        train(Run(tmp_path / str(parts)), recipe, corpus, quiet=True)
        losses.append([line["loss"] for line in train_lines(tmp_path / str(parts))])
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


def test_beginnings_let_sequences_begin_with_a_line_end(tmp_path: Path, corpus: Corpus) -> None:
    first: list[int] = []

    def spy(model: LanguageModel, hidden: Tensor, batch: Batch, memory: Memory | None) -> Loss:
        first.extend(batch.inputs[:, 0].tolist())
        return next_word_loss(model, hidden, batch, memory)

    recipe = tiny_recipe(corpus, train__beginnings=0.5, train__steps=5)
    train(Run(tmp_path), recipe, corpus, objective=spy, quiet=True)
    line_end = corpus.vocabulary.words.index("<eos>")
    assert all(word == line_end for word in first[1::2])
    assert any(word != line_end for word in first[::2])


class Counter(Plugin):
    """Counts tokens, adds a parameter, nails a weight, and stops the run by a signal if asked."""

    name = "counter"

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.tokens = torch.zeros((), dtype=torch.long)
        self.interrupt_at = interrupt_at

    def prepare(self, model: LanguageModel, processes: Processes) -> None:
        assert processes.leads
        model.register_parameter("extra", torch.nn.Parameter(torch.ones(3)))

    def numbers(self) -> dict[str, float]:
        return {"tokens_so_far": float(self.tokens)}

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
    def objective(
        model: LanguageModel, hidden: Tensor, batch: Batch, memory: Memory | None
    ) -> Loss:
        extra = model.get_parameter("extra").square().sum()
        hard = next_word_loss(model, hidden, batch, memory).total
        return Loss(total=hard + extra, hard=hard, numbers={"extra": extra, "half": 0.5})

    recipe = tiny_recipe(corpus, train__sampling=sampling, model__dropout=0.1)
    whole = Run(tmp_path / "whole")
    train(whole, recipe, corpus, objective=objective, plugins=[Counter()], quiet=True)

    parts = Run(tmp_path / "parts")
    stopper = Counter(interrupt_at=5)
    outcome = train(parts, recipe, corpus, objective=objective, plugins=[stopper], quiet=True)
    assert (outcome.finished, outcome.step) == (False, 5)
    counter = Counter()
    outcome = train(parts, recipe, corpus, objective=objective, plugins=[counter], quiet=True)
    assert (outcome.finished, outcome.step) == (True, 12)
    assert int(counter.tokens) == 12 * 4 * 24
    assert same_tensors(whole.last, parts.last)
    assert same_tensors(whole.best, parts.best)
    saved = read_checkpoint(parts.last).tensors
    assert float(saved["model.embedding.tables.0"][0, 0]) == 0.25
    assert {"optimizer.exp_avg.extra", "plugin.counter.tokens"} <= set(saved)
    assert float(saved["model.extra"].max()) < 0.99  # the added parameter was trained
    drop = {"tokens_per_second", "seconds"}
    one, other = (
        [
            {k: v for k, v in line.items() if k not in drop}
            for line in read_metrics(r / "metrics.jsonl")
        ]
        for r in (whole.path, parts.path)
    )
    assert one == other
    lines = [line for line in one if line["kind"] == "train"]
    assert [line["tokens_so_far"] for line in lines] == [96.0 * step for step in range(2, 13, 2)]
    for line in lines:  # perplexity is that of the next word, whatever is minimized
        assert line["loss"] == pytest.approx(line["hard_loss"] + line["extra"], rel=1e-5)
        assert line["perplexity"] == pytest.approx(math.exp(line["hard_loss"]), rel=1e-12)
        assert line["half"] == 0.5
    assert lines[0]["extra"] > 2.9


def test_signal_handlers_are_given_back(tmp_path: Path, corpus: Corpus) -> None:
    before = signal.getsignal(signal.SIGINT)
    train(Run(tmp_path), tiny_recipe(corpus, train__steps=3), corpus, quiet=True)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_divergence_names_step_rate_and_checkpoint(
    tmp_path: Path, corpus: Corpus, where: str
) -> None:
    def diverging(
        model: LanguageModel, hidden: Tensor, batch: Batch, memory: Memory | None
    ) -> Loss:
        loss = next_word_loss(model, hidden, batch, memory).total
        if batch.step < 7:
            return Loss(total=loss)
        # √0 has a finite value and an infinite slope.
        slope = (loss - loss.detach()).sqrt()
        return Loss(total=loss * float("nan") if where == "loss" else loss + slope)

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
    lower = float(message.split("--train.learning_rate ")[1])
    assert 0 < lower < recipe.train.learning_rate


def test_a_checkpoint_that_leads_to_divergence_at_once_is_not_called_good(
    tmp_path: Path, corpus: Corpus
) -> None:
    def diverging(
        model: LanguageModel, hidden: Tensor, batch: Batch, memory: Memory | None
    ) -> Loss:
        loss = next_word_loss(model, hidden, batch, memory).total
        return Loss(total=loss if batch.step < 6 else loss * float("nan"))

    run, recipe = Run(tmp_path), tiny_recipe(corpus)
    for said in ("the last good checkpoint is", "leads there at once; the last good model is"):
        with pytest.raises(NonFiniteLossError, match=said) as caught:
            train(run, recipe, corpus, objective=diverging, quiet=True)
    assert str(run.best) in str(caught.value)
    assert run.best.is_file()


def test_batch_must_be_shared_evenly(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = Processes(rank=0, count=3, device=torch.device("cpu"))
    with pytest.raises(
        ConfigError, match=r"train\.batch must be a multiple of 3 for 3 processes .* got 4"
    ):
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
    skip_without_bfloat16()
    outcomes = {}
    for precision in ("float32", "bfloat16"):
        recipe = tiny_recipe(corpus, train__precision=precision, train__steps=40)
        outcome = train(Run(tmp_path / precision), recipe, corpus, quiet=True)
        outcomes[precision] = outcome.best_loss
        weights = read_checkpoint(Run(tmp_path / precision).best).tensors.values()
        assert {weight.dtype for weight in weights} == {torch.float32}
    assert outcomes["bfloat16"] != outcomes["float32"]
    assert outcomes["bfloat16"] == pytest.approx(outcomes["float32"], rel=0.02)


def test_weights_gone_astray_are_not_saved(tmp_path: Path, corpus: Corpus) -> None:
    """The step's loss and gradient are finite; only what the plug-in leaves behind is not."""

    class Spoiler(Plugin):
        def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
            if batch.step == self.at:
                with torch.no_grad():
                    model.softmax.biases[2][0] = float("inf")

        def __init__(self, at: int) -> None:
            self.at = at

    for at, said in ((5, "step 6: a weight"), (7, "step 8: the validation loss")):
        run = Run(tmp_path / str(at))
        with pytest.raises(NonFiniteLossError, match=said):
            train(run, tiny_recipe(corpus), corpus, plugins=[Spoiler(at)], quiet=True)
        assert read_checkpoint(run.last).progress.step == (4 if at == 5 else 6)
        assert all(bool(t.isfinite().all()) for t in read_checkpoint(run.last).tensors.values())


def test_what_cannot_begin_leaves_no_run(tmp_path: Path, corpus: Corpus) -> None:
    run = Run(tmp_path / "run")
    with pytest.raises(CorpusError, match=r"lower train\.window"):
        train(run, tiny_recipe(corpus, train__window=100_000), corpus, quiet=True)
    train(run, tiny_recipe(corpus), corpus, quiet=True)
    assert Run.open(run.path).recipe() == tiny_recipe(corpus)


def test_a_run_is_not_mixed_with_another(tmp_path: Path, corpus: Corpus) -> None:
    run = Run(tmp_path)
    train(run, tiny_recipe(corpus, train__steps=3), corpus, quiet=True)
    longer = tiny_recipe(corpus, train__steps=5, train__learning_rate=0.02)
    with pytest.raises(RunError, match=r"another train\.steps, train\.learning_rate"):
        train(run, longer, corpus, quiet=True)
    assert train(run, longer, corpus, amend=True, quiet=True).step == 5
    assert run.recipe() == longer
    for key, value in (("train__batch", 8), ("train__seed", 3), ("model__dropout", 0.5)):
        with pytest.raises(RunError, match=f"another {key.replace('__', '.')}"):
            train(run, tiny_recipe(corpus, **{key: value}), corpus, amend=True, quiet=True)
    assert run.recipe() == longer


def test_a_model_of_another_run_may_be_the_beginning(tmp_path: Path, corpus: Corpus) -> None:
    first, second = Run(tmp_path / "first"), Run(tmp_path / "second")
    recipe = tiny_recipe(corpus, train__steps=40)
    outcome = train(first, recipe, corpus, quiet=True)
    short = tiny_recipe(corpus, train__steps=1, train__warmup=0, train__learning_rate=1e-9)
    again = train(second, short, corpus, model=first.model(), quiet=True)
    assert again.best_loss == pytest.approx(outcome.best_loss, rel=1e-5)


def test_words_out_of_range_are_refused(tmp_path: Path, corpus: Corpus) -> None:
    config = tiny_recipe(corpus).model
    model = LanguageModel(config)
    ids = corpus.split("valid")[:50].copy()
    ids[7] = config.bounds[-1]
    with pytest.raises(CorpusError, match=f"word {config.bounds[-1]} is out of range"):
        evaluate(model, ids)


def test_training_outside_the_main_thread(tmp_path: Path, corpus: Corpus) -> None:
    outcomes = []
    recipe = tiny_recipe(corpus, train__steps=3)
    thread = threading.Thread(
        target=lambda: outcomes.append(train(Run(tmp_path), recipe, corpus, quiet=True))
    )
    thread.start()
    thread.join()
    assert [outcome.step for outcome in outcomes] == [3]


def test_leftovers_of_a_killed_save_are_removed(tmp_path: Path, corpus: Corpus) -> None:
    leftover = tmp_path / ".last.safetensors.abc.tmp"
    leftover.write_bytes(b"half")
    train(Run(tmp_path), tiny_recipe(corpus, train__steps=3), corpus, quiet=True)
    assert not leftover.exists()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("metrics.jsonl", "garbage\n"),
        ("metrics.jsonl", "[1]\n"),
        ("corpus.json", "[]"),
        ("corpus.json", '{"path": 3, "fingerprint": "x"}'),
        ("recipe.yaml", "a: ["),
        ("recipe.yaml", ""),
        ("recipe.yaml", "model: {width: wide}"),
        ("last.safetensors", "short"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, corpus: Corpus, file: str, text: str) -> None:
    run = Run(tmp_path)
    recipe = tiny_recipe(corpus, train__steps=3)
    train(run, recipe, corpus, quiet=True)
    (tmp_path / file).write_text(text)
    with pytest.raises(
        RunError, match="corpus" if file == "corpus.json" else re.escape(file)
    ) as caught:
        train(run, recipe, corpus, quiet=True)
    assert "\n" not in str(caught.value)
