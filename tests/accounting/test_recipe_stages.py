"""`micronet account RECIPE` counts the model that the recipe ends with, and every stage's."""

import json
from typing import Any

import pytest

from micronet_lm.cli.main import main


def account(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["account", *words, "--json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_the_papers_best_model(capsys: pytest.CaptureFixture[str]) -> None:
    report = account(capsys, "paper/micronet")
    assert f"{report['score']:.4f}" == "0.0387"
    assert report["storage"] == pytest.approx(1_757_461, abs=1)
    assert report["operations"]["total"] == pytest.approx(8_806_961, abs=3)
    model = report["model"]
    assert (model["bits"], model["cache"], model["weights"]) == (9, 3000, 8_296_021)
    assert sum(model["activation_quantizers"].values()) == 57
    assert round(1 - model["density"], 4) == 0.3579


def test_every_stage_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    stages = account(capsys, "paper/micronet", "--stages")["stages"]
    names = ["teacher", "student", "prune", "search-cache", "quantize"]
    assert [own["stage"] for own in stages] == names
    by_name = {own["stage"]: own for own in stages}
    assert by_name["teacher"]["parameters"] == 53_859_529
    assert by_name["student"]["operations"] == pytest.approx(18_455_386.76, abs=0.01)
    # A larger cache: 1000 more states of 256 numbers, and their softmax.
    more = by_name["search-cache"]["operations"] - by_name["prune"]["operations"]
    assert more == pytest.approx(1000 * (256 + 255 + 3), abs=1e-6)
    assert main(["account", "paper/micronet", "--stages"]) == 0
    told = capsys.readouterr().out
    assert all(f" {name} " in told for name in names)


def test_keys_of_later_stages_are_not_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    plain = account(capsys, "paper/student", "--quantize.bits", "9")
    assert plain["model"]["bits"] == 9
    small = account(capsys, "paper/micronet", "--quantize.bits", "8")
    assert small["storage"] == pytest.approx(1_591_006.4, abs=0.1)
    sparse = account(capsys, "paper/student", "--prune.sparsity", "0.5")
    assert sparse["model"]["density"] == pytest.approx(0.5, abs=0.05)
    large = account(capsys, "paper/student-cache", "--search.cache_size", "5000")
    assert large["model"]["cache"] == 5000
    text = account(capsys, "paper/quantized-text")
    assert text["rules"] == "paper"
    assert text["model"]["activation_quantizers"].keys() == {
        "attention_values",
        "ffn_output",
        "hidden",
        "qkv",
        "relu",
    }


def test_a_plan_does_not_replace_what_the_recipe_says(capsys: pytest.CaptureFixture[str]) -> None:
    for words, sentence in (
        (["--bits", "8"], "--bits is a plan, but paper/micronet has a section quantize"),
        (["--density", "0.5"], "--density is a plan, but paper/micronet has a section prune"),
    ):
        assert main(["account", "paper/micronet", *words]) == 2
        assert sentence in capsys.readouterr().err
    assert main(["account", "no-run", "--stages"]) == 2
    assert "--stages is for recipes" in capsys.readouterr().err


def test_an_unknown_teacher_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "paper/micronet", "--distill.teacher", "nobody"]) != 0
    assert "there is no preset 'nobody'" in capsys.readouterr().err
