"""Pruned runs: masks that hold whatever happens, resumes to the same bits, and the two verbs."""

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.support.recipes import tiny_recipe
from tests.support.runs import same_tensors, train_lines
from torch import Tensor

from micronet_lm.cli.main import main
from micronet_lm.compression import write_soft_labels
from micronet_lm.compression.allocation import by_slope
from micronet_lm.compression.gradual_pruning import GradualPruning, cubic_sparsity
from micronet_lm.compression.magnitude import model_sparsity, prunable, removed
from micronet_lm.compression.sensitivity import load_sensitivity
from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.model import LanguageModel
from micronet_lm.runs.files import PRUNING
from micronet_lm.training import Batch, Plugin, Run, evaluate, perplexity, train
from micronet_lm.training.checkpoint import read_checkpoint


@pytest.fixture(scope="module", name="corpus")
def _corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    random = np.random.default_rng(0)
    lines = [" ".join(f"w{(f * k * k) % 199}" for k in range(1, 9)) for f in random.integers(40, size=600)]  # fmt: skip # noqa: E501
    text = folder / "text.txt"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return build_corpus(
        str(text), folder / "built", tokenizer="wikitext", min_count=1, split=(0.8, 0.1, 0.1)
    )


@pytest.fixture(scope="module", name="source")
def _source(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A trained run with cache and Hebbian update, and its analysis."""
    run = Run(tmp_path_factory.mktemp("runs") / "source")
    recipe = tiny_recipe(corpus, cache__size=30, hebbian__gamma=0.05, train__steps=20)
    train(run, recipe, corpus, quiet=True)
    words = ["sensitivity", str(run.path), "--tokens", "300", "--grid", "0.3,0.6,0.9", "--json"]
    assert main(words) == 0
    return run


class Watch(Plugin):
    """Looks, after all others, whether every matrix is as sparse as the schedule says."""

    name = "watch"

    def __init__(
        self, final: Mapping[str, float], steps: int, every: int, stop: int | None
    ) -> None:
        self._final, self._steps, self._every, self._stop = final, steps, every, stop
        self.seen: list[int] = []

    def after_step(self, model: LanguageModel, hidden: Tensor, batch: Batch) -> None:
        done = batch.step + 1
        last = self._steps if done >= self._steps else done // self._every * self._every
        for name, matrix in prunable(model).items():
            wanted = cubic_sparsity(last, steps=self._steps, initial=0.1, final=self._final[name])
            assert int((matrix == 0).sum()) == removed(matrix.numel(), wanted), (done, name)
        self.seen.append(done)
        if done == self._stop:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("seed", range(4))
def test_masks_hold_over_any_steps_resumes_and_hebbian_updates(
    tmp_path: Path, corpus: Corpus, source: Run, seed: int
) -> None:
    random = np.random.default_rng(seed)
    length = int(random.integers(6, 20))
    steps, every = int(random.integers(3, length + 1)), int(random.integers(1, 6))
    stop = int(random.integers(1, length))
    recipe = tiny_recipe(
        corpus,
        cache__size=30,
        hebbian__gamma=0.3,
        train__steps=length,
        train__evaluate_every=2,
        train__sampling="stream" if seed % 2 else "random",
    )
    final = {n: float(random.uniform(0.1, 0.9)) for n in prunable(source.model())}

    def go(folder: Path, stop: int | None = None) -> list[int]:
        pruning = GradualPruning(dict.fromkeys(final, 0.1), final, steps=steps, every=every)
        watch = Watch(final, steps, every, stop)
        plugins: list[Plugin] = [pruning, watch]
        begin = None if (folder / "last.safetensors").is_file() else source.model()
        train(Run(folder), recipe, corpus, model=begin, plugins=plugins, quiet=True)
        return watch.seen

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert go(whole) == list(range(1, length + 1))
    assert go(parts, stop) + go(parts) == list(range(1, length + 1))
    assert same_tensors(whole / "last.safetensors", parts / "last.safetensors")
    assert same_tensors(whole / "best.safetensors", parts / "best.safetensors")
    # The best model is chosen among those with the final sparsity.
    progress = Run(whole).progress()
    assert progress.best_step is not None
    assert progress.best_step >= steps
    saved = read_checkpoint(whole / "last.safetensors").tensors
    for name in final:
        mask = saved[f"plugin.pruning.{name}"]
        assert torch.equal(saved[f"model.{name}"] != 0, mask.bool())


def test_the_verb_prunes_gradually(
    tmp_path: Path, corpus: Corpus, source: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pruned"
    words = ["prune", str(source.path), "--sparsity", "0.5", "--out", str(out)]
    words += ["--allocation", "threshold"]
    words += ["--train.steps", "8", "--prune.every", "2", "--train.evaluate_every", "4"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "all" in said.out
    assert "0.5000" in said.out
    assert "Pruning any one of them alone" in said.out
    run = Run.open(out)
    model = run.model()
    assert model_sparsity(model) == pytest.approx(0.5, abs=1e-3)  # rounded in tiny matrices
    plan = json.loads((out / PRUNING).read_text())
    sizes = {name: matrix.numel() for name, matrix in prunable(model).items()}
    mean = sum(sizes[n] * p["final"] for n, p in plan["matrices"].items()) / sum(sizes.values())
    assert mean == pytest.approx(0.5, abs=1e-4)
    finals = {p["final"] for p in plan["matrices"].values()}
    assert len(finals) > 3  # not uniform
    lines = train_lines(out)
    assert [line["sparsity"] for line in lines] == sorted(line["sparsity"] for line in lines)
    # The words' counters went on where the source's ended.
    seen = [
        int(read_checkpoint(r / "last.safetensors").tensors["plugin.hebbian.seen"].sum())
        for r in (source.path, out)
    ]
    assert seen[1] - seen[0] == 8 * 4 * 24
    # It belongs to its source and goes on by its own verb only.
    assert main(["prune", "--resume", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 8
    assert main(["train", "--resume", str(out)]) == 2
    assert "needs a trained run: micronet prune" in capsys.readouterr().err
    assert main(["evaluate", str(out), "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert evaluated["perplexity"] == pytest.approx(perplexity(run.progress().best_loss or 0))


def test_distillation_may_stay_on(
    tmp_path: Path, corpus: Corpus, source: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    out, labels = str(tmp_path / "pruned"), str(tmp_path / "labels")
    write_soft_labels(source.model(), corpus, Path(labels), count=4, quiet=True)
    words = ["prune", str(source.path), "--allocation", "slope", "--out", out, "--labels", labels]
    words += ["--train.steps", "4", "--prune.every", "2", "--train.evaluate_every", "2"]
    assert main(words) == 2
    assert "--labels needs a section distill" in capsys.readouterr().err
    words += ["--distill.top_k", "4"]
    assert main(words) == 0
    lines = train_lines(tmp_path / "pruned")
    assert {"soft_loss", "hard_loss", "sparsity"} <= set(lines[0])
    assert main(["prune", "--resume", out, "--train.steps", "6"]) == 0  # it remembers its labels
    lines = train_lines(tmp_path / "pruned")
    assert lines[-1]["step"] == 6
    assert "soft_loss" in lines[-1]


@pytest.mark.parametrize("uniform", [True, False])
def test_one_shot(
    tmp_path: Path, corpus: Corpus, source: Run, uniform: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "shot"
    words = ["prune", str(source.path), "--sparsity", "0.4", "--one-shot", "--out", str(out)]
    assert main([*words, "--json", *(["--allocation", "uniform"] if uniform else [])]) == 0
    report = json.loads(capsys.readouterr().out)
    model, before = Run.open(out).model(), source.model()
    assert report["validation_perplexity"] == pytest.approx(
        evaluate(model, corpus.split("valid")).perplexity
    )
    shares = {n: float((m == 0).double().mean()) for n, m in prunable(model).items()}
    sizes = {n: m.numel() for n, m in prunable(model).items()}
    assert model_sparsity(model) == pytest.approx(0.4, abs=1e-3)
    wanted = dict.fromkeys(sizes, 0.4)
    if not uniform:  # where the next weight costs least, by the source's own analysis
        analysis = load_sensitivity(source.path / "sensitivity", before)
        wanted = by_slope(analysis.curves(), sizes, 0.4).sparsities
        assert max(wanted.values()) - min(wanted.values()) > 0.1
    for name, share in shares.items():
        assert share == pytest.approx(wanted[name], abs=0.51 / sizes[name])
    for name, value in before.state_dict().items():  # what is left is untouched
        kept = model.state_dict()[name]
        assert torch.equal(kept, torch.where(kept == 0, kept, value))
    assert main(["train", "--resume", str(out)]) in {1, 2}


def test_mistakes(
    tmp_path: Path, source: Run, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = Run(tmp_path / "bare")
    train(bare, tiny_recipe(corpus, train__steps=3), corpus, quiet=True)
    out, here = str(tmp_path / "never"), str(source.path)
    for words, code, said in (
        (["prune", here], 2, "give what to prune and where"),
        (
            ["prune", here, "--sparsity", "1.5", "--out", out],
            2,
            "--sparsity must be in [0, 1), got 1.5",
        ),
        (["prune", here, "--sparsity", "0.95", "--out", out], 2, "sparsity must be at most 0.9000"),
        (["prune", str(bare.path), "--out", out], 1, "has no complete sensitivity analysis"),
        (["prune", here, "--one-shot", "--labels", here, "--out", "x"], 2, "trains nothing"),
        (
            ["prune", here, "--one-shot", "--out", here],
            1,
            "is the run itself: choose another --out",
        ),
        (
            ["prune", here, "--one-shot", "--out", str(bare.path)],
            1,
            "holds a trained run: choose another --out",
        ),
        (["prune", "--resume", here], 2, "has no section prune"),
        (["prune", here, "--out", out, "--prune.steps", "99"], 2, "train.steps, got 99"),
        (["sensitivity", here, "--grid", "0.1,x"], 2, "each of which must be a number, got 'x'"),
        (["sensitivity", here, "--grid", "0,1.2"], 2, "each of which must be in (0, 1], got 0"),
        (["sensitivity", here, "--tokens", "400"], 1, "belongs to an analysis with other tokens"),
    ):
        assert main(words) == code, words
        error = capsys.readouterr().err
        assert said in error, error
        assert error.count("\n") == 1
    assert not Path(out).exists()


def test_the_analysis_verb(source: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Again, and as a table: nothing is measured twice."""
    before = (source.path / "sensitivity" / "points.jsonl").read_bytes()
    words = ["sensitivity", str(source.path), "--tokens", "300", "--grid", "0.3,0.6,0.9"]
    assert main(words) == 0
    assert "blocks.1.attention.qkv" in capsys.readouterr().out
    assert (source.path / "sensitivity" / "points.jsonl").read_bytes() == before
    picture = source.path / "sensitivity" / "sensitivity.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
