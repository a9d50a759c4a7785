"""The model that ships with the package answers right after installation, and keeps its word."""

import json
from pathlib import Path

import pytest

from micronet_lm.artifact import read_packed
from micronet_lm.cli.main import main
from micronet_lm.config import load_recipe, preset_names
from micronet_lm.corpus import Corpus, build_corpus
from micronet_lm.runtime.evaluation import evaluate_engine
from micronet_lm.runtime.model import load
from micronet_lm.runtime.places import shipped_model


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return build_corpus("python-docs", tmp_path_factory.mktemp("docs") / "corpus")


def test_it_is_small_and_says_how_it_was_made() -> None:
    assert shipped_model().stat().st_size < 1_500_000
    card = load(shipped_model()).card
    command = card["made_by"].split()
    assert command[:2] == ["micronet", "run"]
    assert command[2] in preset_names()
    assert card["corpus"]["source"] == "python-docs"
    assert card["recipe"]["quantize"]["bits"] == 6
    ngrams = load_recipe(command[2]).ngrams
    assert ngrams is not None
    assert card["recipe"]["ngrams"] == ngrams.model_dump(mode="json", exclude_none=True)
    assert load("demo").card == load().card == card


def test_it_spells_in_a_twentieth_of_its_file_at_most() -> None:
    spelling = read_packed(shipped_model()).spelling
    assert spelling is not None
    assert len(spelling.data) <= 0.05 * shipped_model().stat().st_size
    lm = load("demo")
    assert lm.can_spell
    once, twice = (lm.open_score("Return the frobnicator.\n" * n).bits for n in (1, 2))
    assert twice - once < 0.6 * once  # it has learned the word
    assert lm.suggest("Return the frobnicator. The frobn", 1)[0].word == "frobnicator"


def test_it_answers_without_being_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["predict", "Return a new", "--json"]) == 0
    words = json.loads(capsys.readouterr().out)["words"]
    assert len(words) == 5
    assert 0.02 < words[0]["probability"] < 1
    assert words[0]["word"] not in {"Return", "a", "new"}  # what the cache alone would say
    assert main(["predict", "Return a", "-m", "other.safetensors"]) == 1
    assert "other.safetensors" in capsys.readouterr().err


def test_its_perplexity_is_what_its_card_says(corpus: Corpus) -> None:
    lm = load(shipped_model())
    if corpus.fingerprint != lm.card["corpus"]["fingerprint"]:
        pytest.skip("another version of Python carries another documentation")
    found = evaluate_engine(lm.engine, corpus.split("test")).perplexity
    assert found == pytest.approx(lm.card["perplexity"]["test"], rel=1e-4)
