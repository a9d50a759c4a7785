"""The menu of widths: every point once, and a divergence that is one."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.compression.conftest import make_teacher
from tests.training.conftest import tiny_recipe

from micronet_lm.accounting import challenge, count, examine
from micronet_lm.accounting.runs import counted_shares
from micronet_lm.cli.main import main
from micronet_lm.compression import divergence
from micronet_lm.compression.divergence import mean_divergence
from micronet_lm.corpus import Corpus
from micronet_lm.training import Run, evaluate, train


def test_the_divergence_is_that_of_the_distributions(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(divergence, "ROWS", 17)  # pieces that do not fit the text
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
    tmp_path: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Run(tmp_path / "source")
    train(source, tiny_recipe(corpus, cache__size=30, train__steps=30), corpus, quiet=True)
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
