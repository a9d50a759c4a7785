"""The figures of section 5.2: sums against a direct count, and the files that the verb writes."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.recipes import tiny_recipe

from micronet_lm.cli.main import main
from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.report.cache_effect import By, bin_edges, cache_effect, token_gaps
from micronet_lm.training import Run, evaluate, train


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_gaps_are_distances_to_the_previous_occurrence(words: list[int]) -> None:
    expected = []
    for place, word in enumerate(words):
        before = [p for p in range(place) if words[p] == word]
        expected.append(place - before[-1] if before else 0)
    assert token_gaps(np.array(words)).tolist() == expected


@given(st.integers(1, 10**6))
def test_bins_cover_everything_once(largest: int) -> None:
    edges = bin_edges(largest)
    assert edges[0] == 1
    assert edges[-1] == largest + 1
    assert list(edges) == sorted(set(edges))


@pytest.mark.parametrize("by", ["tokens", "gaps"])
def test_sums_of_losses_up_to_each_edge(by: By) -> None:
    random = np.random.default_rng(0)
    ids = random.zipf(1.3, size=3000) % 700
    losses = {name: random.random(2999) for name in ("none", "half", "whole")}
    effect = cache_effect(ids, losses, by)
    values = ids[1:] + 1 if by == "tokens" else token_gaps(ids)[1:]
    for number, name in enumerate(("none", "half")):
        difference = effect.differences[number]
        assert (difference.name, difference.reference) == (name, "whole")
        apart = losses[name] - losses["whole"]
        for edge, share, ours in zip(
            effect.edges[1:], effect.sizes, difference.cumulative, strict=True
        ):
            chosen = (values > 0) & (values < edge)
            assert share == pytest.approx(chosen.mean())
            assert ours == pytest.approx(apart[chosen].sum() / 2999)
        assert difference.cumulative[-1] + effect.new_words[number] == pytest.approx(apart.mean())
    assert effect.tokens == 2999
    if by == "tokens":
        assert effect.sizes[-1] == pytest.approx(1)
        assert effect.new_words == (0.0, 0.0)


@pytest.fixture(scope="module", name="runs")
def _runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    random = np.random.default_rng(0)
    runs = {}
    for name, words in (("one", 90), ("other", 95)):
        lines = [" ".join(f"w{w}" for w in random.integers(words, size=30)) for _ in range(200)]
        text = folder / f"{name}.txt"
        text.write_text("\n".join(lines) + "\n", encoding="utf-8")
        build_corpus(str(text), folder / f"{name}-corpus", tokenizer="wikitext", min_count=1)
    for name, text_name, size in (
        ("none", "one", 0), ("small", "one", 10), ("large", "one", 50), ("elsewhere", "other", 0)
    ):  # fmt: skip
        corpus = Corpus.open(folder / f"{text_name}-corpus")
        train(Run(folder / name), tiny_recipe(corpus, cache__size=size), corpus, quiet=True)
        runs[name] = folder / name
    return runs


@pytest.mark.parametrize("figure", ["cache-tokens", "cache-gaps"])
def test_the_verb_writes_a_picture_and_its_data(
    figure: str, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three = [str(runs[name]) for name in ("none", "small", "large")]
    assert main(["reproduce", figure, *three, "--out", str(tmp_path / "new"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    stem = tmp_path / "new" / figure
    assert json.loads(stem.with_suffix(".json").read_text()) == data
    assert stem.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    ids = Run.open(runs["none"]).corpus().split("valid")
    means = [evaluate(Run.open(runs[name]).model(), ids).loss for name in runs][:3]
    for number, difference in enumerate(data["differences"]):
        total = difference["cumulative"][-1] + data["new_words"][number]
        assert total == pytest.approx(means[number] - means[2], abs=1e-6)
    assert [d["name"] for d in data["differences"]] == ["none (no cache)", "small (cache 10)"]
    assert data["tokens"] == len(ids) - 1
    assert main(["reproduce", figure, *three[:2], "--out", str(tmp_path)]) == 0
    assert "nats per token" in capsys.readouterr().out


def test_a_run_is_not_compared_with_itself(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = [str(runs["none"]), str(runs["none"] / ".." / runs["none"].name)]
    assert main(["reproduce", "cache-gaps", *same, "--out", str(tmp_path / "never")]) == 2
    assert "one of them is named twice" in capsys.readouterr().err


def test_a_text_without_repeated_words_has_no_gaps() -> None:
    ids = np.arange(50)
    effect = cache_effect(ids, {"a": np.ones(49), "b": np.zeros(49)}, "gaps")
    assert effect.new_words == (1.0,)
    assert effect.sizes[-1] == 0


def test_runs_must_share_their_corpus(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "cache-gaps", str(runs["none"]), str(runs["elsewhere"])]
    assert main([*words, "--out", str(tmp_path / "never")]) == 1
    assert "were trained on different corpora" in capsys.readouterr().err
    assert not (tmp_path / "never").exists()


def test_without_matplotlib_it_says_what_to_install(runs: dict[str, Path], tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import micronet_lm.cli.main as m\n"
        "sys.exit(m.main(['reproduce', 'cache-gaps', *sys.argv[1:]]))\n"
    )
    words = [str(runs["none"]), str(runs["small"]), "--out", str(tmp_path / "never")]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "micronet: this verb needs matplotlib: pip install -c constraints.txt '.[report]' in a "
        "clone of micronet-lm\n"
    )
