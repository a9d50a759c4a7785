"""The list of models that ship: what their cards and files say."""

import json

import pytest

from micronet_lm.artifact import read_packed
from micronet_lm.artifact.reader import read_card
from micronet_lm.cli.main import main
from micronet_lm.corpus.licences import licence_of
from micronet_lm.runtime.places import shipped_model, shipped_models


def test_every_shipped_model_is_listed_as_its_file_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sorted(told) == shipped_models()
    for name, model in told.items():
        packed = read_packed(shipped_model(name))
        assert model["bytes"] == shipped_model(name).stat().st_size
        assert model["words"] == len(packed.words)
        assert model["perplexity"]["test"] == packed.card["perplexity"]["test"]
        assert model["licence"], name
        assert model["made_by"].startswith("micronet run ")


def test_people_see_names_sizes_and_licences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    assert "demo" in shown
    assert "MB" in shown
    assert "PSF-2.0" in shown


def test_a_card_alone_is_the_models_card() -> None:
    assert read_card(shipped_model()) == read_packed(shipped_model()).card


def test_a_text_of_ones_own_has_no_known_licence() -> None:
    assert licence_of("mytext") is None
