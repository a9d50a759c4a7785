"""Runs and pipelines do not share folders, and keys follow a changed number of steps."""

from pathlib import Path

import pytest
from tests.support.corpora import story_corpus
from tests.support.recipes import BRIEF, as_words

from micronet_lm.cli.main import main
from micronet_lm.pipeline import take_apart
from micronet_lm.training import Run


def test_runs_and_pipelines_do_not_share_a_folder(
    tmp_path: Path,
    finished: Path,
    monkeypatch: pytest.MonkeyPatch,
    recipe_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    corpus = story_corpus(tmp_path)
    monkeypatch.chdir(tmp_path)
    brief = as_words({key: value for key, value in BRIEF.items() if key != "train.warmup"})
    words = ["train", "demo", "--corpus", str(corpus.path), *brief]
    before = sorted(path.name for path in finished.iterdir())
    assert main([*words, "--out", str(finished)]) == 1
    assert "holds a pipeline of micronet run, not a training run" in capsys.readouterr().err
    assert sorted(path.name for path in finished.iterdir()) == before
    # Without --out a run has a folder that no pipeline takes, and a warm-up in proportion.
    assert main(words) == 0
    assert "In proportion to the steps: train.warmup 1, train.save" in capsys.readouterr().err
    run = Run.open(Path("runs/train/demo"))
    assert run.recipe().train.warmup == 1
    assert main(["run", str(recipe_file), "--out", str(run.path)]) == 1
    said = capsys.readouterr().err
    assert f"{run.path} holds a training run, not a pipeline; choose another --out" in said
    assert not (run.path / "stages").exists()


def test_a_teachers_keys_follow_its_own_steps() -> None:
    recipes = take_apart("demo/micronet", {"teacher.train.steps": 10, "train.steps": 40})
    assert recipes.teacher is not None
    assert recipes.scaled["teacher.train.warmup"] == recipes.teacher.train.warmup < 10
    assert recipes.scaled["train.warmup"] == recipes.student.train.warmup == 6
