"""Distillation: the paper's loss, its schedule, and its place in the one training loop."""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.support.models import make_teacher
from tests.support.recipes import tiny_recipe
from tests.support.runs import same_tensors, train_lines
from tests.support.sizes import set_sizes
from torch import Tensor

from micronet_lm.compression import Distillation, SoftLabels, distill, write_soft_labels
from micronet_lm.compression.annealing import soft_weight
from micronet_lm.compression.softlabels.store import Labels
from micronet_lm.config import DistillConfig
from micronet_lm.corpus import Corpus
from micronet_lm.errors import ConfigError, LabelsError, RunError
from micronet_lm.model import LanguageModel
from micronet_lm.training import Batch, Loss, Run, train
from micronet_lm.training.metrics import read_metrics

WEIGHTS = {"distill__top_k": 8, "distill__weight_max": 0.6, "distill__weight_min": 0.2}


def numbers_of(loss: Loss) -> dict[str, float]:
    return {name: float(value) for name, value in loss.reported().items()}


class Given:
    """Labels that a test made up."""

    def __init__(self, words: Tensor, weights: Tensor) -> None:
        self.labels = Labels(words.numpy(), weights.numpy().astype(np.float32))

    def check_recipe(self, config: DistillConfig) -> None:
        pass

    def windows(self, starts: Sequence[int], length: int, count: int) -> Labels:
        assert list(starts) == [11, 300]
        assert (length, count) == self.labels.words.shape[1:]
        return self.labels


def test_the_weight_falls_linearly() -> None:
    config = DistillConfig(weight_max=0.5, weight_min=0.05)
    assert soft_weight(config, 0, 200_000) == 0.5
    assert soft_weight(config, 100_000, 200_000) == pytest.approx(0.275)
    assert soft_weight(config, 50_000, 200_000) == pytest.approx(0.3875)
    assert soft_weight(config, 200_000, 200_000) == pytest.approx(0.05)
    steady = DistillConfig(weight_max=0.3, weight_min=0.3)
    assert {soft_weight(steady, step, 7) for step in range(7)} == {0.3}


@pytest.mark.parametrize("cache", [0, 20])
@pytest.mark.parametrize("step", [0, 30, 99])
def test_the_loss_against_the_whole_vocabulary(
    corpus: Corpus, cache: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels in all three bins, weights that do not sum to one; values and every gradient."""
    set_sizes(monkeypatch, recalled_queries=7)
    student = make_teacher(corpus, cache).double()
    size = len(corpus.vocabulary)
    random = torch.Generator().manual_seed(step)
    inputs = torch.randint(size, (2, 25), generator=random)
    targets = torch.randint(size, (2, 25), generator=random)
    words = torch.randint(size, (2, 25, 9), generator=random)
    for number, (low, high) in enumerate(pairwise(student.config.bounds)):
        words[..., number] = low + words[..., number] % (high - low)  # one in every bin
    words[..., 7], words[..., 8] = words[..., 2], targets  # some twice, and the true one
    weights = torch.rand(2, 25, 9, generator=random).half().float()
    batch = Batch(
        inputs=inputs, targets=targets, starts=torch.tensor([11, 300]), step=step, fresh=True
    )
    config = DistillConfig(top_k=9, weight_max=0.7, weight_min=0.1)
    objective = Distillation(Given(words, weights), config, steps=100)  # type: ignore[arg-type]
    hidden, _ = student(inputs)
    loss = objective(student, hidden, batch, None)
    loss.total.backward()
    mine = {name: p.grad for name, p in student.named_parameters()}
    student.zero_grad()

    # The same from log-probabilities of all words; the cache's part is written out.
    hidden, _ = student(inputs)
    flat = student.softmax.log_distribution(hidden.flatten(0, 1), student.tables)
    probability = flat.view(2, 25, size).exp()
    if student.cache is not None:
        theta, lam = student.cache.theta, student.cache.lam
        rows = []
        for states, after, softmax in zip(hidden, targets, probability, strict=True):
            mixed = [softmax[0]]
            for n in range(1, 25):
                first = max(0, n - cache)
                share = (theta * states[first:n] @ states[n]).softmax(0)
                votes = torch.zeros(size).double().index_add(0, after[first:n], share)
                mixed.append((1 - lam) * softmax[n] + lam * votes)
            rows.append(torch.stack(mixed))
        probability = torch.stack(rows)
    dense = torch.zeros(2, 25, size, dtype=torch.float64).scatter_add(2, words, weights.double())
    soft = -(dense * probability.log()).sum() / 50
    hard = -probability.log().gather(2, targets[..., None]).mean()
    weight = 0.7 - step / 100 * 0.6
    total = (1 - weight) * hard + weight * soft
    torch.testing.assert_close(loss.total, total)
    assert numbers_of(loss) == pytest.approx(
        {"loss": float(total.detach()), "hard_loss": float(hard.detach()),
         "soft_loss": float(soft.detach()), "soft_weight": weight}
    )  # fmt: skip
    total.backward()
    for name, parameter in student.named_parameters():
        torch.testing.assert_close(mine[name], parameter.grad, msg=name)


def test_probabilities_are_not_normalized(corpus: Corpus) -> None:
    """A teacher that is half as sure counts half as much."""
    student = make_teacher(corpus)
    words, targets = torch.randint(50, (2, 10, 3)), torch.randint(50, (2, 10))
    batch = Batch(
        inputs=targets, targets=targets, starts=torch.tensor([11, 300]), step=0, fresh=True
    )
    weights = torch.rand(2, 10, 3)
    losses = []
    for scale in (1.0, 0.5):
        objective = Distillation(Given(words, weights * scale), DistillConfig(top_k=3), steps=9)  # type: ignore[arg-type]
        loss = objective(student, torch.randn(2, 10, 16) * 0 + 1, batch, None)
        losses.append(numbers_of(loss))
    assert losses[1]["soft_loss"] == pytest.approx(losses[0]["soft_loss"] / 2)
    assert losses[1]["hard_loss"] == losses[0]["hard_loss"]


def test_labels_stand_beside_their_tokens(tmp_path: Path, corpus: Corpus) -> None:
    """A student that is its teacher: L_soft over all words is the entropy, and least in place."""
    teacher = make_teacher(corpus).eval()
    size = len(corpus.vocabulary)
    write_soft_labels(teacher, corpus, tmp_path, count=size, shard_tokens=300, quiet=True)
    labels = SoftLabels.open(tmp_path)
    starts = torch.tensor([0, 250, 701])
    ids = torch.from_numpy(corpus.split("train").astype(np.int64))
    reach = teacher.config.reach - 1
    length = reach + 40
    inputs = torch.stack([ids[s : s + length] for s in starts])
    targets = torch.stack([ids[s + 1 : s + length + 1] for s in starts])
    with torch.inference_mode():
        hidden, _ = teacher(inputs)
        whole = teacher.log_distribution(hidden)[:, reach:]  # what all of the reach is known for
    entropy = -float((whole.exp() * whole).sum(2).mean())
    config = DistillConfig(top_k=size, weight_max=1.0)
    objective = Distillation(labels, config, steps=10)

    def soft(shift: int) -> float:
        batch = Batch(
            inputs=inputs[:, reach:],
            targets=targets[:, reach:],
            starts=starts + reach + shift,
            step=0,
            fresh=True,
        )
        with torch.inference_mode():
            loss = objective(teacher, hidden[:, reach:], batch, None)
            return numbers_of(loss)["soft_loss"]

    assert soft(0) == pytest.approx(entropy, rel=1e-3)
    assert soft(1) > 1.05 * entropy
    assert soft(-1) > 1.05 * entropy


@pytest.fixture(name="labels")
def _labels(tmp_path: Path, corpus: Corpus, teacher: LanguageModel) -> SoftLabels:
    folder = tmp_path / "labels"
    write_soft_labels(teacher, corpus, folder, count=8, shard_tokens=1000, quiet=True)
    return SoftLabels.open(folder)


def untimed_lines(run: Run) -> list[dict[str, float]]:
    drop = {"tokens_per_second", "seconds"}
    return [{k: v for k, v in x.items() if k not in drop} for x in train_lines(run.path)]


def test_a_run_reports_both_losses(tmp_path: Path, corpus: Corpus, labels: SoftLabels) -> None:
    run = Run(tmp_path / "run")
    recipe = tiny_recipe(corpus, train__log_every=1, **WEIGHTS)
    outcome = distill(run, recipe, corpus, labels, quiet=True)
    assert outcome.finished
    lines = untimed_lines(run)
    assert len(lines) == 12
    for number, line in enumerate(lines):
        weight = 0.6 - number / 12 * 0.4
        assert line["soft_weight"] == pytest.approx(weight)
        mixed = (1 - weight) * line["hard_loss"] + weight * line["soft_loss"]
        assert line["loss"] == pytest.approx(mixed, rel=1e-5)
        assert line["perplexity"] == pytest.approx(math.exp(line["hard_loss"]))
    assert Run.open(run.path).recipe() == recipe
    assert run.input("labels").fingerprint == labels.fingerprint
    assert run.input("labels").path == labels.path


@pytest.mark.parametrize("sampling", ["random", "stream"])
def test_an_interrupted_run_goes_on_to_the_same_bits(
    tmp_path: Path, corpus: Corpus, labels: SoftLabels, sampling: str
) -> None:
    """Numbers that no line had reported yet are in the checkpoint too."""
    more = {**WEIGHTS, "train__sampling": sampling, "cache__size": 30, "train__accumulate": 2}
    recipe = tiny_recipe(corpus, train__log_every=5, **more)
    whole, parts = Run(tmp_path / "whole"), Run(tmp_path / "parts")
    distill(whole, recipe, corpus, labels, quiet=True)

    class Stopping(SoftLabels):
        calls = 0

        def windows(self, starts: Sequence[int], length: int, count: int | None = None) -> Labels:
            self.calls += 1
            if self.calls == 2 * 8:
                raise KeyboardInterrupt
            return super().windows(starts, length, count)

    stopping = Stopping(labels.path, labels.settings, labels.summary)
    with pytest.raises(KeyboardInterrupt):
        distill(parts, recipe, corpus, stopping, quiet=True)
    distill(parts, recipe, corpus, labels, quiet=True)
    assert same_tensors(whole.last, parts.last)
    assert untimed_lines(whole) == untimed_lines(parts)
    # A line has the mean over its steps: 0 to 4, 5 to 9, 10 and 11.
    means = [0.6 - mean / 12 * 0.4 for mean in (2, 7, 10.5)]
    assert [line["soft_weight"] for line in untimed_lines(parts)] == pytest.approx(means)


def test_a_student_learns_from_labels_alone(tmp_path: Path, corpus: Corpus) -> None:
    """With nothing but a trained teacher's sampled words, the student learns the language."""
    first = Run(tmp_path / "teacher")
    recipe = tiny_recipe(corpus, train__steps=200, train__evaluate_every=200)
    train(first, recipe, corpus, quiet=True)
    write_soft_labels(
        first.model(), corpus, tmp_path / "labels", method="sampled", count=12, quiet=True
    )
    alone = {"distill__method": "sampled", "distill__weight_max": 1, "distill__weight_min": 1}
    run = Run(tmp_path / "student")
    recipe = tiny_recipe(corpus, train__steps=200, train__evaluate_every=200, **alone)
    distill(run, recipe, corpus, SoftLabels.open(tmp_path / "labels"), quiet=True)
    lines = [line for line in read_metrics(run.path / "metrics.jsonl") if line["kind"] == "valid"]
    counts = torch.tensor(corpus.vocabulary.counts, dtype=torch.float64)
    words = torch.from_numpy(corpus.split("valid").astype(np.int64))
    by_frequency = -float((counts / counts.sum()).log()[words].mean())
    assert lines[-1]["loss"] < by_frequency - 0.5


def test_a_run_keeps_its_labels(
    tmp_path: Path, corpus: Corpus, labels: SoftLabels, teacher: LanguageModel
) -> None:
    run = Run(tmp_path / "run")
    recipe = tiny_recipe(corpus, **WEIGHTS)
    distill(run, recipe, corpus, labels, quiet=True)
    with torch.no_grad():
        teacher.tables[0][0] += 1
    write_soft_labels(teacher, corpus, tmp_path / "others", count=8, quiet=True)
    others = SoftLabels.open(tmp_path / "others")
    with pytest.raises(RunError, match="are not the labels of this run"):
        distill(run, recipe, corpus, others, quiet=True)
    changed = tiny_recipe(corpus, **{**WEIGHTS, "distill__weight_max": 0.9})
    with pytest.raises(RunError, match=r"another distill\.weight_max.*micronet distill --resume"):
        distill(run, changed, corpus, labels, amend=True, quiet=True)


def test_recipes_and_labels_must_agree(tmp_path: Path, corpus: Corpus, labels: SoftLabels) -> None:
    run = Run(tmp_path / "run")
    with pytest.raises(ConfigError, match="has no section distill"):
        distill(run, tiny_recipe(corpus), corpus, labels, quiet=True)
    with pytest.raises(ConfigError, match="needs a teacher's soft labels: micronet distill"):
        train(run, tiny_recipe(corpus, **WEIGHTS), corpus, quiet=True)
    with pytest.raises(LabelsError, match="the recipe needs the top 30"):
        distill(run, tiny_recipe(corpus, distill__weight_max=0.5), corpus, labels, quiet=True)
    with pytest.raises(ConfigError, match=r"weight_min must not exceed weight_max 0\.5, got 0\.6"):
        tiny_recipe(corpus, distill__weight_min=0.6)
    assert not run.path.exists()
