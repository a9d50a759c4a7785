"""The search finds what a fine grid finds, from hidden states that are computed once."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.support.corpora import recurring_corpus
from tests.support.recipes import tiny_recipe
from torch import Tensor

import micronet_lm as mn
from micronet_lm.artifact import read_packed
from micronet_lm.cli.main import main
from micronet_lm.compression import Surface, search_cache
from micronet_lm.config import CacheConfig, load_recipe, preset_names
from micronet_lm.corpus import Corpus
from micronet_lm.model import Cache, LanguageModel
from micronet_lm.runtime.engines import Name, has_native
from micronet_lm.training import Run, evaluate, perplexity, train


@pytest.fixture(scope="module", name="corpus")
def _corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Lines with a few words of their own, so that a cache has something to find."""
    return recurring_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module", name="run")
def _run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("runs") / "cached")
    recipe = tiny_recipe(corpus, cache__size=30, train__steps=40, train__evaluate_every=40)
    train(run, recipe, corpus, quiet=True)
    return run


def test_it_finds_what_a_grid_finds(run: Run, corpus: Corpus) -> None:
    model, ids = run.model(), corpus.split("valid")
    search = search_cache(model, Surface(model, ids), size=60)
    best = math.inf
    for theta in search.found.theta * np.exp(np.linspace(-1.5, 1.5, 13)):
        for lam in np.linspace(0.05, 0.95, 19):
            model.cache = Cache(CacheConfig(size=60, theta=float(theta), lam=float(lam)))
            best = min(best, evaluate(model, ids).loss)
    assert search.found.loss < best + 1e-4
    assert search.found.loss < min(search.start.loss, search.before)


def test_its_numbers_are_those_of_an_evaluation(run: Run, corpus: Corpus) -> None:
    """Before, at the start and at every point that it visited."""
    model, ids = run.model(), corpus.split("valid")
    assert model.cache is not None
    search = search_cache(model, Surface(model, ids, chunk=100), size=60)
    assert search.before == pytest.approx(evaluate(model, ids).loss, rel=1e-6)
    learned = (model.cache.theta.item(), model.cache.lam.item())
    assert (search.start.theta, search.start.lam) == pytest.approx(learned, rel=1e-6)
    assert model.cache.size == 30  # the model is left as it is
    assert len(search.points) == len({(point.theta, point.lam) for point in search.points})
    assert {search.start, search.found} <= set(search.points)
    for point in search.points[::4]:
        model.cache = Cache(CacheConfig(size=60, theta=point.theta, lam=point.lam))
        assert point.loss == pytest.approx(evaluate(model, ids).loss, rel=1e-6)


def test_a_ramp_is_searched_with_and_kept(
    run: Run, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its numbers are an evaluation's; the result, what is made of it and its file have it."""
    model, ids = run.model(), corpus.split("valid")
    search = search_cache(model, Surface(model, ids), size=60, ramp=50)
    for point in (search.start, search.found):
        model.cache = Cache(CacheConfig(size=60, theta=point.theta, lam=point.lam, ramp=50))
        assert point.loss == pytest.approx(evaluate(model, ids).loss, rel=1e-6)
    out = tmp_path / "searched"
    words = ["search-cache", str(run.path), "--size", "60", "--ramp", "50", "--out", str(out)]
    assert main([*words, "--json", "--no-confirm"]) == 0
    assert json.loads(capsys.readouterr().out)["found"]["loss"] == pytest.approx(search.found.loss)
    assert (cache := Run(out).recipe().cache) is not None
    assert cache.ramp == 50
    again = tmp_path / "again"
    assert main(["search-cache", str(out), "--size", "40", "--out", str(again), "--json"]) == 0
    assert (cache := Run(again).recipe().cache) is not None
    assert cache.ramp == 50  # kept, though the cache ends it sooner
    assert main(["pack", str(again), "-o", str(tmp_path / "model.safetensors")]) == 0
    packed = read_packed(tmp_path / "model.safetensors").cache
    assert packed is not None
    assert (packed.size, packed.ramp) == (40, 40)
    capsys.readouterr()
    assert main([*words[:-1], str(tmp_path / "never"), "--ramp", "61"]) == 2
    assert "--ramp must be at most the cache's size 60, got 61" in capsys.readouterr().err


def test_a_fade_is_searched_with_and_kept(
    run: Run, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The losses are an evaluation's; the packed file has the fade, and all engines' numbers."""
    model, ids = run.model(), corpus.split("valid")
    search = search_cache(model, Surface(model, ids), size=60, fade=25, confirm=True)
    for point in (search.start, search.found):
        text = ids if point is search.start else ids[: (len(ids) - 1) // 2 + 1]
        model.cache = Cache(CacheConfig(size=60, theta=point.theta, lam=point.lam, fade=25))
        assert point.loss == pytest.approx(evaluate(model, text).loss, rel=1e-6)
    assert search.kept_fade == (25 if search.kept_size == 60 else 0)
    out, file = tmp_path / "searched", tmp_path / "model.safetensors"
    words = ["search-cache", str(run.path), "--size", "60", "--fade", "25", "--no-confirm"]
    assert main([*words, "--out", str(out), "--json"]) == 0
    capsys.readouterr()
    assert (cache := Run(out).recipe().cache) is not None
    assert cache.fade == 25
    wanted = evaluate(Run(out).model(), ids).loss
    for form in ("--plain", "--coded"):
        assert main(["pack", str(out), "-o", str(file), "--corpus", str(corpus.path), form]) == 0
        capsys.readouterr()
        engines: list[Name] = ["numpy", "native"] if has_native() else ["numpy"]
        for engine in engines:
            scores = mn.load(file, engine=engine).engine.score(ids.astype(np.int64))
            assert -scores.mean() == pytest.approx(wanted, rel=1e-5)
        found = inspected(file, capsys)
        assert found["cache"] == cache.model_dump(exclude={"trained"}) | {
            "theta": pytest.approx(cache.theta, rel=1e-6),
            "lam": pytest.approx(cache.lam, rel=1e-6),
        }


def inspected(file: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["inspect", str(file), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def changing_text(corpus: Corpus, *, turns: bool) -> np.ndarray:
    """One line again and again; in a text that `turns`, the second half has no such order."""
    line = corpus.split("valid")[:20]
    first = np.tile(line, 40)
    words = np.random.default_rng(1).integers(len(corpus.vocabulary), size=len(first))
    second = words.astype(first.dtype) if turns else first
    return np.concatenate([first, second])


@pytest.mark.parametrize("cached", [True, False])
def test_what_makes_the_other_half_worse_is_not_kept(
    run: Run, corpus: Corpus, cached: bool
) -> None:
    model = run.model()
    if not cached:
        model.cache = None
    ids = changing_text(corpus, turns=True)
    surface = Surface(model, ids)
    search = search_cache(model, surface, size=60, confirm=True)
    assert search.confirmation is not None
    assert search.confirmation.found > search.confirmation.trained
    before = evaluate(model, ids).loss
    assert search.before == pytest.approx(before, rel=1e-6)
    if cached:
        assert search.kept is not None
        assert model.cache is not None
        own = (30, model.cache.theta.item(), model.cache.lam.item())
        assert (search.kept_size, search.kept.theta, search.kept.lam) == pytest.approx(own)
        assert search.kept.loss == pytest.approx(before, rel=1e-6)
    else:
        assert (search.kept, search.kept_size) == (None, 0)
    blind = search_cache(model, surface, size=60)
    assert blind.confirmation is None
    assert blind.kept == blind.found


def test_what_helps_both_halves_is_kept(run: Run, corpus: Corpus) -> None:
    model, ids = run.model(), changing_text(corpus, turns=False)
    search = search_cache(model, Surface(model, ids), size=60, ramp=50, confirm=True)
    assert search.confirmation is not None
    assert search.confirmation.found < search.confirmation.trained
    assert search.kept is not None
    assert search.kept_size == 60
    assert (search.kept.theta, search.kept.lam) == (search.found.theta, search.found.lam)
    whole, half = evaluate(model, ids).loss, evaluate(model, ids[: len(ids) // 2]).loss
    assert search.before == pytest.approx(whole, rel=1e-6)
    for point, text in ((search.kept, ids), (search.found, ids[: (len(ids) - 1) // 2 + 1])):
        model.cache = Cache(CacheConfig(size=60, theta=point.theta, lam=point.lam, ramp=50))
        assert point.loss == pytest.approx(evaluate(model, text).loss, rel=1e-6)
    assert half > search.found.loss


def test_halves_read_what_the_whole_reads(run: Run, corpus: Corpus) -> None:
    model, ids = run.model(), corpus.split("valid")
    whole = Surface(model, ids)
    halves = whole.halves()
    parts = [half.log_cache(0.02, 60) for half in halves]
    torch.testing.assert_close(torch.cat(parts), whole.log_cache(0.02, 60))
    sizes = [len(part) for part in parts]
    losses = [half.loss(part, 0.2, 50) for half, part in zip(halves, parts, strict=True)]
    mean = sum(n * loss for n, loss in zip(sizes, losses, strict=True)) / sum(sizes)
    assert mean == pytest.approx(whole.loss(whole.log_cache(0.02, 60), 0.2, 50), rel=1e-6)


def test_the_verb_says_which_values_it_kept(
    run: Run,
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = changing_text(corpus, turns=True)
    monkeypatch.setattr(Corpus, "split", lambda self, name: text)
    words = ["search-cache", str(run.path), "--size", "60"]
    assert main([*words, "--out", str(tmp_path / "kept")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "on the second half perplexity is" in shown
    assert "so the cache stays as it was trained" in shown
    record = json.loads((tmp_path / "kept" / "search.json").read_text())
    assert record["confirmation"]["kept"] == "trained"
    assert record["kept"]["size"] == 30
    assert (cache := Run(tmp_path / "kept").recipe().cache) is not None
    assert cache.size == 30
    assert cache.theta == pytest.approx(record["kept"]["theta"])
    assert Run(tmp_path / "kept").progress().best_loss == pytest.approx(record["kept"]["loss"])
    assert main([*words, "--no-confirm", "--out", str(tmp_path / "blind")]) == 0
    assert "second half" not in capsys.readouterr().out
    assert (cache := Run(tmp_path / "blind").recipe().cache) is not None
    assert cache.size == 60


def test_presets_of_the_paper_search_its_way() -> None:
    searching = [n for n in preset_names() if load_recipe(n).search]
    assert len(searching) > 40
    ours = {
        "demo/micronet",
        "demo/searched-again",
        "demo/shipped",
        "wikitext-2/medium-file",
        "wikitext-2/small-file",
    }
    for name in searching:
        search = load_recipe(name).search
        assert search is not None
        assert search.confirm == (name in ours)


def test_a_model_without_a_cache_gets_one(run: Run, corpus: Corpus) -> None:
    model, ids = run.model(), corpus.split("valid")
    model.cache = None
    search = search_cache(model, Surface(model, ids), size=60)
    assert search.before == pytest.approx(evaluate(model, ids).loss, rel=1e-6)
    assert search.start.theta == pytest.approx(0.016)
    assert search.start.lam == pytest.approx(0.07)
    assert search.found.loss < search.before


def test_hidden_states_are_computed_once(
    run: Run, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real = LanguageModel.forward

    def spy(self: LanguageModel, ids: Tensor, state: object = None) -> object:
        calls.append(ids.numel())
        return real(self, ids, state)  # type: ignore[arg-type]

    monkeypatch.setattr(LanguageModel, "forward", spy)
    model, ids = run.model(), corpus.split("valid")
    search_cache(model, Surface(model, ids), size=60)
    assert sum(calls) == len(ids) - 1


def test_the_verb_writes_a_run(
    run: Run, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search-cache", str(run.path), "--size", "60", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["out"] == str(run.path / "searched-60")
    before, found = report["before"]["perplexity"], report["kept"]["perplexity"]
    assert found < before
    assert report["confirmation"]["kept"] == "found"
    assert len(report["points"]) > 5
    assert report == {
        **json.loads((run.path / "searched-60" / "search.json").read_text()),
        "out": report["out"],
    }
    # The result is a run with the found values, and evaluates to what was promised.
    assert main(["evaluate", report["out"], "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert evaluated["perplexity"] == pytest.approx(found, rel=1e-6)
    assert evaluated["cache"]["size"] == 60
    assert evaluated["cache"]["theta"] == pytest.approx(report["found"]["theta"], rel=1e-5)
    assert report["split"] == "valid"
    searched = Run.open(Path(report["out"]))
    assert searched.progress().best_loss == report["kept"]["loss"]
    recipe = searched.recipe()
    assert recipe.cache is not None
    assert recipe.cache.lam == report["found"]["lam"]
    for name, value in searched.model().state_dict().items():
        if not name.startswith("cache."):
            assert torch.equal(value, run.model().state_dict()[name])
    # Again over its own result, as a table; the lines on standard error tell the way.
    assert main(["search-cache", str(run.path), "--size", "60"]) == 0
    said = capsys.readouterr()
    assert f"{before:.2f}" in said.out
    assert f"{found:.2f}" in said.out
    assert "best with lambda" in said.err
    # A search of what was searched begins where that ended.
    assert main(["search-cache", report["out"], "--size", "60", "--out", str(tmp_path / "r")]) == 0
    assert json.loads((tmp_path / "r" / "search.json").read_text())["kept"][
        "perplexity"
    ] == pytest.approx(found, rel=1e-4)


def test_mistakes(
    run: Run, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    afile = tmp_path / "afile"
    afile.write_text("in the way")
    assert main(["search-cache", str(run.path), "--size", "8", "--out", str(tmp_path / "s")]) == 0
    capsys.readouterr()
    for words, code, said in (
        (["search-cache", str(run.path), "--size", "0"], 2, "--size must be at least 1, got 0"),
        (
            ["search-cache", str(run.path), "--out", str(run.path)],
            1,
            "is the run itself: choose another --out",
        ),
        (
            ["search-cache", str(run.path), "--out", str(corpus.path)],
            1,
            "is not a result of an earlier call",
        ),
        (["search-cache", str(run.path), "--out", str(afile)], 1, "is a file, not a folder"),
        (["search-cache", str(tmp_path)], 1, "is not a run"),
        (
            ["train", "--resume", str(tmp_path / "s")],
            1,
            "is a result, which cannot be trained further",
        ),
        (["evaluate", str(run.path), "--train.steps", "3"], 2, "only the cache can be changed"),
        (["evaluate", str(run.path), "--cache.lam", "2"], 2, "cache.lam must be below 1, got 2"),
    ):
        assert main(words) == code
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1


def test_evaluate_with_another_cache(
    run: Run, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    model, ids = run.model(), corpus.split("valid")
    assert model.cache is not None
    theta = model.cache.theta.item()

    def reported(*words: str) -> dict[str, float]:
        assert main(["evaluate", str(run.path), *words, "--json"]) == 0
        report: dict[str, float] = json.loads(capsys.readouterr().out)
        return report

    model.cache.size = 5
    other = reported("--cache.size", "5")
    assert other["loss"] == pytest.approx(evaluate(model, ids).loss, rel=1e-6)
    assert other["cache"]["theta"] == pytest.approx(theta, rel=1e-5)  # type: ignore[index]
    assert reported("--cache.lam", "0.5")["loss"] != other["loss"]
    model.cache = None
    none = reported("--cache.size", "0")
    assert none["loss"] == pytest.approx(evaluate(model, ids).loss, rel=1e-6)
    assert none["cache"] is None
    assert none["perplexity"] == perplexity(none["loss"])
