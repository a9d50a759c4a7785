"""The share of a table of n-grams: found on half of the texts, kept where the others agree."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.support.corpora import squares_corpus, story_corpus
from tests.support.shapes import SMALL, changed

from micronet_lm.artifact import read_packed, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.cli.main import main
from micronet_lm.corpus import Corpus
from micronet_lm.errors import CorpusError
from micronet_lm.runtime.engines import open_engine
from micronet_lm.runtime.evaluation import evaluate_engine
from micronet_lm.runtime.ngram_share import fit_share, texts_of


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return squares_corpus(tmp_path_factory.mktemp("squares"))


@pytest.fixture
def untrained(corpus: Corpus, tmp_path: Path) -> Path:
    """A model that has learned nothing, with the words of the corpus."""
    shape = changed(SMALL, vocabulary=len(corpus.vocabulary))
    model = random_model(shape, Choice(cache=20, ramp=10))
    path = tmp_path / "plain.safetensors"
    own = replace(model, words=corpus.vocabulary.words, card={"name": "untrained"})
    write_packed(path, own)
    return path


class Scores:
    """An engine that gives these probabilities for every text."""

    def __init__(self, chances: Sequence[Sequence[float]]) -> None:
        self._chances = chances

    def score_batch(self, texts: Any, threads: int = 1) -> list[np.ndarray]:
        return [np.log(np.array(own, np.float32)) for own in self._chances]


def fitted(plain: list[list[float]], table: list[list[float]]) -> Any:
    half = [((np.array(a) + np.array(b)) / 2).tolist() for a, b in zip(plain, table, strict=True)]
    return fit_share(Scores(plain), Scores(half), [np.zeros(3, np.int64)] * len(plain))  # type: ignore[arg-type]


def test_the_share_is_the_best_one() -> None:
    """The loss −log(0.1 + 0.8 s) − log(0.9 − 0.8 s) has its minimum where both are the same."""
    plain, table = [[0.1, 0.9]] * 4, [[0.9, 0.1]] * 4
    assert fitted(plain, table).share == pytest.approx(0.5, abs=1e-3)
    plain, table = [[0.3, 0.3, 0.3]] * 2, [[0.6, 0.2, 0.1]] * 2
    chances = np.array(table[0]), np.array(plain[0])
    shares = np.linspace(0, 1, 2001)
    best = shares[np.argmax([np.log(s * chances[0] + (1 - s) * chances[1]).sum() for s in shares])]
    assert fitted(plain, table).share == pytest.approx(best, abs=2e-3)


def test_a_table_that_the_second_half_does_not_like_is_left_out() -> None:
    fit = fitted([[0.2, 0.2], [0.5, 0.5]], [[0.6, 0.6], [0.01, 0.01]])
    assert fit.share == 0
    assert fit.after > fit.before == pytest.approx(2)
    assert "no table" in fit.sentence


def test_texts_begin_with_lines_and_do_not_overlap(corpus: Corpus) -> None:
    ids = np.asarray(corpus.split("valid")).tolist()
    line_end = corpus.vocabulary.words.index("<eos>")
    at = 0
    for text in texts_of(corpus, 13):
        assert text[0] == line_end
        assert len(text) == 14
        while ids[at : at + 13] != text[1:].tolist():
            at += 1
        assert at == 0 or ids[at - 1] == line_end
        at += 13
    (first, second) = texts_of(corpus, len(ids) - 1)  # too long for two: the split is halved
    assert [*first, *second] == ids


def test_a_short_split_is_refused() -> None:
    words = SimpleNamespace(words=["<unk>", "<eos>"])
    short = SimpleNamespace(vocabulary=words, split=lambda name: np.array([0, 1, 0]))
    with pytest.raises(CorpusError, match="3 tokens is too short"):
        texts_of(short, 30)  # type: ignore[arg-type]


def test_a_model_that_knows_nothing_becomes_better(
    corpus: Corpus, untrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "better.safetensors"
    words = ["ngrams", str(untrained), "-o", str(out), "--corpus", str(corpus.path), "--json"]
    assert main([*words, "--order", "3", "--budget", "3000"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["share"] > 0.5
    assert report["after"] < report["before"] / 2
    assert report["table"]["bytes"] <= 3000
    assert report["bytes"] == out.stat().st_size
    model = read_packed(out)
    assert model.card["recipe"]["ngrams"]["budget"] == 3000
    for split in ("valid", "test"):
        found = evaluate_engine(open_engine(out), corpus.split(split)).perplexity
        assert found == pytest.approx(model.card["perplexity"][split], rel=1e-6)
        plain = evaluate_engine(open_engine(untrained), corpus.split(split)).perplexity
        assert found < plain / 2
    again = tmp_path / "again.safetensors"
    words[1:4] = [str(out), "-o", str(again)]
    assert main([*words, "--order", "3", "--budget", "3000"]) == 0
    assert "n-grams, which is replaced" in capsys.readouterr().err
    assert again.read_bytes() == out.read_bytes()


def test_another_corpus_is_refused(
    untrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, out = story_corpus(tmp_path), tmp_path / "out.safetensors"
    words = ["ngrams", str(untrained), "-o", str(out), "--corpus", str(other.path)]
    assert main(words) == 1
    assert "another vocabulary" in capsys.readouterr().err
    assert main([*words, "--order", "1"]) != 0
    assert "ngrams.order" in capsys.readouterr().err
    assert not out.exists()
