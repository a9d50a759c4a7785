"""The menu of widths: every point once, and a divergence that is one."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.support.models import make_teacher
from tests.support.recipes import tiny_recipe
from tests.support.runs import train_lines
from tests.support.sizes import set_sizes

from micronet_lm.accounting import challenge, count, examine
from micronet_lm.accounting.run_target import counted_shares
from micronet_lm.cli.main import main
from micronet_lm.compression import write_soft_labels
from micronet_lm.compression.divergence import mean_divergence
from micronet_lm.corpus import Corpus
from micronet_lm.training import Run, evaluate, train


@pytest.fixture(scope="module", name="source")
def _source(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("runs") / "source")
    train(run, tiny_recipe(corpus, cache__size=30, train__steps=30), corpus, quiet=True)
    return run


def words_of(source: Run, out: Path) -> list[str]:
    words = ["quantize", str(source.path), "--out", str(out), "--steps", "3", "--tokens", "200"]
    return [*words, "--quantize.calibration_tokens", "500", "--json", "--sweep"]


def test_the_divergence_is_that_of_the_distributions(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_sizes(monkeypatch, compared_rows=17)  # pieces that do not fit the text
    one, other = make_teacher(corpus, cache=20).eval(), make_teacher(corpus, cache=20).eval()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.05)
    ids = corpus.split("valid")[:90]
    assert mean_divergence(one, one, ids) == 0
    words = torch.from_numpy(ids.astype(np.int64))[None]
    with torch.inference_mode():
        p, q = (
            m.log_distribution(m(words[:, :-1])[0], words[:, 1:])[0].double() for m in (one, other)
        )
    wanted = float((p.exp() * (p - q)).sum(dim=1).mean())
    assert mean_divergence(one, other, ids) == pytest.approx(wanted, rel=1e-4)
    assert wanted > 1e-3


def test_a_sweep_does_every_point_once(
    tmp_path: Path, source: Run, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sweep"
    words = ["quantize", str(source.path), "--out", str(out), "--steps", "3", "--tokens", "200"]
    words += ["--quantize.calibration_tokens", "500", "--sweep"]
    methods = ["--methods", "calibrated,fitted,trained,learned"]
    capsys.readouterr()
    assert main([*words, "9,3", *methods, "--json"]) == 0
    said = capsys.readouterr()
    report = json.loads(said.out)
    points = {(p["method"], p["bits"]): p for p in report["points"]}
    assert len(points) == 9
    assert said.err.count("divergence") == 9
    assert json.loads((out / "sweep.json").read_text()) == report
    assert report["divergence_tokens"] == 200
    for method in ("calibrated", "fitted", "trained", "learned"):
        fine, coarse = points[method, 9], points[method, 3]
        assert 0 < fine["divergence"] < coarse["divergence"]
        assert fine["storage"] > coarse["storage"]
        assert fine["operations"] > coarse["operations"]
        run = Run.open(out / f"{method}-9")
        assert evaluate(run.model(), corpus.split("valid")).perplexity == fine["perplexity"]
        shares = counted_shares(corpus.split("test"), run.recipe().model)
        account = count(examine(run.path, run.recipe(), shares), challenge())
        assert float(account.storage) == fine["storage"]
        ids = corpus.split("valid")[:201]
        assert mean_divergence(source.model(), run.model(), ids) == fine["divergence"]
    assert points["unquantized", 32]["perplexity"] == pytest.approx(
        evaluate(source.model(), corpus.split("valid")).perplexity
    )
    lines = (out / "sweep.md").read_text().splitlines()
    assert len(lines) == 2 + 9
    assert "KL on 200 tokens" in lines[0]

    # Again with one width more: only that is done.
    times = {file: file.stat().st_mtime_ns for file in out.glob("*/best.safetensors")}
    assert main([*words, "9,5,3", *methods]) == 0
    assert capsys.readouterr().out == (out / "sweep.md").read_text()
    after = {file: file.stat().st_mtime_ns for file in out.glob("*/best.safetensors")}
    assert {file: after[file] for file in times} == times
    assert len(after) == len(times) + 4
    # A point that was measured on other tokens is measured anew, not trained anew.
    words[words.index("200")] = "100"
    assert main([*words, "9", "--methods", "trained", "--json"]) == 0
    (_, point) = json.loads(capsys.readouterr().out)["points"]
    assert point["divergence"] != points["trained", 9]["divergence"]
    assert point["perplexity"] == points["trained", 9]["perplexity"]
    file = out / "trained-9" / "best.safetensors"
    assert file.stat().st_mtime_ns == times[file]


def test_the_table_keeps_the_points_of_earlier_calls(
    tmp_path: Path, source: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sweep"
    words = words_of(source, out)
    capsys.readouterr()
    assert main([*words, "8,9", "--methods", "fitted"]) == 0
    first = json.loads(capsys.readouterr().out)["points"]
    assert main([*words, "5", "--methods", "calibrated"]) == 0
    said = capsys.readouterr()
    points = json.loads(said.out)["points"]
    assert [(p["method"], p["bits"]) for p in points] == [
        ("unquantized", 32),
        ("calibrated", 5),
        ("fitted", 9),
        ("fitted", 8),
    ]
    assert [points[0], *points[2:]] == first  # the very numbers
    assert said.err.count("divergence") == 2  # only what was asked for is told
    assert json.loads((out / "sweep.json").read_text())["points"] == points
    assert len((out / "sweep.md").read_text().splitlines()) == 2 + 4
    # What was made from another model or measured on other tokens is not in the table.
    assert main([*words, "5", "--methods", "calibrated", "--tokens", "100"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [(p["method"], p["bits"]) for p in points] == [("unquantized", 32), ("calibrated", 5)]
    file = out / "fitted-9" / "point.json"
    tree = json.loads(file.read_text())
    tree["of"] |= {"source": "another", "tokens": 100}
    file.write_text(json.dumps(tree))
    assert main([*words, "5", "--methods", "calibrated", "--tokens", "100"]) == 0
    assert json.loads(capsys.readouterr().out)["points"] == points


def test_a_sweep_learns_from_the_labels_it_is_given(
    tmp_path: Path, source: Run, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write_soft_labels(source.model(), corpus, one, count=5, quiet=True)
    write_soft_labels(make_teacher(corpus).eval(), corpus, other, count=5, quiet=True)
    out = tmp_path / "sweep"
    words = [*words_of(source, out), "4", "--train.log_every", "1", "--distill.top_k", "5"]
    capsys.readouterr()
    assert main([*words, "--labels", str(one)]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [p["method"] for p in points] == ["unquantized", "calibrated", "trained"]
    assert ["soft_loss" in line for line in train_lines(out / "trained-4")] == [True] * 3
    assert Run.open(out / "trained-4").recipe().distill is not None
    assert Run.open(out / "calibrated-4").recipe().distill is None  # nothing was distilled
    times = {file: file.stat().st_mtime_ns for file in out.glob("*/*.safetensors")}
    # The same labels: all is done. Other labels: the folder holds something else.
    assert main([*words, "--labels", str(one)]) == 0
    assert json.loads(capsys.readouterr().out)["points"] == points
    assert main([*words, "--labels", str(other)]) == 1
    said = capsys.readouterr()
    assert "are not the labels of this run" in said.err
    assert said.err.count("\n") == 1  # before any point
    assert {file: file.stat().st_mtime_ns for file in out.glob("*/*.safetensors")} == times
    # Elsewhere they give another model.
    words[words.index(str(out))] = str(tmp_path / "again")
    assert main([*words, "--labels", str(other)]) == 0
    again = json.loads(capsys.readouterr().out)["points"]
    assert again[1]["perplexity"] == points[1]["perplexity"]
    assert again[2]["perplexity"] != points[2]["perplexity"]
