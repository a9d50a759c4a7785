"""One definition of a model's sparsity, for training, counting and tables: ρ = Σ|φ|ρ_φ / Σ|φ|."""

import json
from pathlib import Path

import pytest
import torch
from tests.support.recipes import tiny_recipe

from micronet_lm.accounting import count, examine, stage_targets
from micronet_lm.accounting.stage_targets import authors_sparsities
from micronet_lm.cli.main import main
from micronet_lm.compression.allocation import Curve, by_slope, by_threshold, uniform
from micronet_lm.compression.magnitude import model_sparsity, prunable
from micronet_lm.config import load_recipe
from micronet_lm.corpus import Corpus
from micronet_lm.errors import UsageError
from micronet_lm.layout import Phi, counted_size, even_sparsity, prunable_sizes
from micronet_lm.layout import model_sparsity as planned_sparsity
from micronet_lm.model import LanguageModel
from micronet_lm.training import Run, train

STUDENT = load_recipe("paper/student").model


def test_the_authors_prune_39_tensors_of_8_296_021_weights() -> None:
    sizes = prunable_sizes(STUDENT, "all")
    assert len(sizes) == 39
    assert sizes.keys() == authors_sparsities(0.358).keys()
    assert {"softmax.biases.1", "softmax.biases.2"} <= sizes.keys()
    for left_out in ("softmax.biases.0", "softmax.tail_weight", "embedding.projections.2.weight"):
        assert left_out not in sizes
    assert counted_size(STUDENT, "all") == 8_296_021


@pytest.mark.parametrize(("target", "reached"), [(0.239, 0.2386), (0.358, 0.3579), (0.477, 0.4772)])
def test_the_authors_sparsities_weigh_to_their_targets(target: float, reached: float) -> None:
    own = planned_sparsity(STUDENT, authors_sparsities(target), "all")
    assert round(own, 4) == reached


def test_matrices_are_all_matrices_but_position_tables() -> None:
    sizes = prunable_sizes(STUDENT)
    assert "softmax.tail_weight" in sizes
    assert not any("positions" in name or "bias" in name for name in sizes)
    assert counted_size(STUDENT) == sum(sizes.values())


@pytest.mark.parametrize("phi", ["matrices", "all"])
def test_a_pruned_run_is_as_sparse_as_its_recipe_is_counted(
    phi: Phi, tmp_path: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_recipe(corpus, train__steps=4)
    train(Run(tmp_path / "dense"), recipe, corpus, quiet=True)
    words = ["prune", str(tmp_path / "dense"), "--sparsity", "0.3", "--allocation", "uniform"]
    more = ["--prune.weights", phi, "--prune.steps", "3", "--prune.every", "1", "--json"]
    assert main([*words, "--out", str(tmp_path / "pruned"), *more]) == 0
    run = Run.open(tmp_path / "pruned")
    model = run.model()
    zeros = sum(int((p == 0).sum()) for p in prunable(model, phi).values())
    every = [p for name, p in model.named_parameters() if "norm" not in name]
    counted = [p for p in every if phi == "all" or (p.ndim == 2 and p.shape != (8, 9))]
    assert zeros / sum(p.numel() for p in counted) == pytest.approx(0.3, abs=2e-3)
    assert model_sparsity(model, phi) == pytest.approx(0.3, abs=2e-3)
    metrics = (tmp_path / "pruned" / "metrics.jsonl").read_text().splitlines()
    told = [json.loads(line).get("sparsity") for line in metrics]
    assert [value for value in told if value][-1] == pytest.approx(0.3, abs=2e-3)
    biased = bool((model.get_parameter("softmax.biases.1") == 0).any())
    assert biased == (phi == "all")
    # The recipe alone is counted with as many zeros, whatever rows they are in.
    planned = stage_targets(run.recipe(), "recipe", (1, 1, 1))["prune"]
    measured = examine(run.path, run.recipe(), (1, 1, 1))
    assert float(count(planned).storage) == pytest.approx(float(count(measured).storage), rel=2e-3)
    capsys.readouterr()


def test_the_analysis_has_curves_of_tail_biases_where_they_may_be_pruned(
    tmp_path: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    dense = tmp_path / "dense"
    train(Run(dense), tiny_recipe(corpus, train__steps=4), corpus, quiet=True)
    grid = ["--tokens", "200", "--grid", "0.5,0.9", "--json"]
    assert main(["sensitivity", str(dense), *grid]) == 0
    words = ["prune", str(dense), "--sparsity", "0.3", "--one-shot", "--prune.weights", "all"]
    assert main([*words, "--out", str(tmp_path / "pruned")]) == 1
    assert "analyse again with micronet sensitivity --weights all" in capsys.readouterr().err
    assert main(["sensitivity", str(dense), "--weights", "all", *grid]) == 0
    assert "softmax.biases.1" in json.loads(capsys.readouterr().out)["matrices"]
    allocation = ["--allocation", "threshold", "--json"]
    assert main([*words, "--out", str(tmp_path / "pruned"), *allocation]) == 0
    assert model_sparsity(Run.open(tmp_path / "pruned").model(), "all") == pytest.approx(
        0.3, abs=5e-3
    )


def test_weights_that_are_never_pruned_count_in_the_denominator() -> None:
    curves = {"a": Curve([0.0, 1.0], [1.0, 2.0]), "b": Curve([0.0, 1.0], [1.0, 3.0])}
    sizes = {"a": 60, "b": 20}
    for allocation in (
        by_threshold(curves, sizes, 0.4, 100),
        by_slope(curves, sizes, 0.4, 100),
        uniform(sizes, 0.4, 100),
    ):
        zeros = sum(sizes[name] * own for name, own in allocation.sparsities.items())
        assert zeros == pytest.approx(40)
    with pytest.raises(UsageError, match=r"at most 0\.8000"):
        by_threshold(curves, sizes, 0.9, 100)
    with pytest.raises(UsageError, match=r"at most 0\.8000"):
        uniform(sizes, 0.9, 100)


def test_an_even_sparsity_reaches_the_target() -> None:
    own = even_sparsity(STUDENT, 0.3, "all")
    assert own > 0.3
    sparsities = dict.fromkeys(prunable_sizes(STUDENT, "all"), own)
    assert planned_sparsity(STUDENT, sparsities, "all") == pytest.approx(0.3)


def test_the_layout_names_parameters_of_the_model() -> None:
    torch.manual_seed(0)
    shape = load_recipe("demo", {"model.vocabulary": 6000}).model
    model = LanguageModel(shape)
    for phi in ("matrices", "all"):
        found = {name: p.numel() for name, p in prunable(model, phi).items()}
        assert found == prunable_sizes(shape, phi)
    every = sum(p.numel() for name, p in model.named_parameters() if "norm" not in name)
    assert counted_size(shape, "all") == every
