"""The Hebbian update's counters go along through every stage; quantizing is without the update."""

from pathlib import Path

import pytest
import torch
from tests.support.recipes import tiny_recipe

from micronet_lm.cli.main import main
from micronet_lm.compression.quantization.run import quantized_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.runs.files import LAST
from micronet_lm.training import Run, train
from micronet_lm.training.checkpoint import read_checkpoint
from micronet_lm.training.run import SEEN

STEPS, TOKENS = 10, 4 * 24


@pytest.fixture(scope="module", name="searched")
def _searched(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A trained run, pruned in one shot, then searched twice: three results in a row."""
    folder = tmp_path_factory.mktemp("runs")
    recipe = tiny_recipe(corpus, cache__size=30, hebbian__gamma=0.05, train__steps=STEPS)
    train(Run(folder / "dense"), recipe, corpus, quiet=True)
    words = ["prune", str(folder / "dense"), "--sparsity", "0.4", "--allocation", "uniform"]
    assert main([*words, "--one-shot", "--out", str(folder / "pruned"), "--json"]) == 0
    for source, size in ((folder / "pruned", "50"), (folder / "pruned" / "searched-50", "60")):
        assert main(["search-cache", str(source), "--size", size, "--json"]) == 0
    return Run.open(folder / "pruned" / "searched-50" / "searched-60")


def counters(run: Run) -> torch.Tensor:
    return read_checkpoint(run.path / LAST).tensors[SEEN]


def quantized(searched: Run, out: Path, *more: str) -> Run:
    words = ["quantize", str(searched.path), "--out", str(out), "--steps", "1", "--json"]
    assert main([*words, "--quantize.calibration_tokens", "300", *more]) == 0
    return Run.open(out)


def test_counters_survive_results_that_are_not_trained(searched: Run) -> None:
    dense = Run.open(searched.path.parents[2] / "dense")
    assert int(counters(dense).sum()) == STEPS * TOKENS
    assert torch.equal(searched.counters()[SEEN], counters(dense))


def test_a_quantization_that_asks_for_the_update_counts_on(searched: Run, tmp_path: Path) -> None:
    run = quantized(searched, tmp_path / "asked", "--quantize.hebbian", "true")
    assert int(counters(run).sum()) == (STEPS + 1) * TOKENS
    assert bool((counters(run) >= searched.counters()[SEEN]).all())


def test_a_quantization_is_without_the_update(searched: Run, tmp_path: Path) -> None:
    run = quantized(searched, tmp_path / "plain")
    assert run.recipe().hebbian is None
    assert SEEN not in read_checkpoint(run.path / LAST).tensors


def test_a_quantization_has_a_batch_of_its_own(corpus: Corpus) -> None:
    recipe = tiny_recipe(corpus, train__accumulate=2, hebbian__gamma=0.05)
    own = quantized_recipe(recipe, {"quantize.batch": 1})
    assert (own.train.batch, own.train.accumulate, own.hebbian) == (1, 1, None)
    assert quantized_recipe(recipe, {}).train.batch == 4
