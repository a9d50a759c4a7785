"""`micronet run --dry-run`: what would be done and what it would cost, with nothing written."""

import json
import shutil
import struct
from pathlib import Path

import pytest

from micronet_lm.cli.main import main
from micronet_lm.config import load_recipe
from micronet_lm.pipeline import costs, take_apart
from micronet_lm.pipeline.corpus_size import CorpusSize, corpus_size
from micronet_lm.pipeline.speed import Speed


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return cache


def tensor_bytes(file: Path) -> int:
    """Return the size of a checkpoint without its header, which depends on names and checksums."""
    with file.open("rb") as opened:
        (header,) = struct.unpack("<Q", opened.read(8))
    return file.stat().st_size - 8 - int(header)


def test_a_plan_costs_what_the_stages_cost(
    recipe_file: Path,
    finished: Path,
    tmp_path: Path,
    own_cache: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "never"
    words = ["run", str(recipe_file), "--out", str(out), "--dry-run"]
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert not out.exists()
    rows = {row["stage"]: row for row in plan["stages"]}
    assert all(row["runs"] and row["state"] == "to do" for row in rows.values())
    # Independent of the estimate: what a pipeline that ran has left.
    result = {
        name: json.loads((finished / "stages" / f"{name}.json").read_text())["result"]
        for name in ("corpus", "teacher", "labels", "student", "sensitivity", "searched")
    }
    assert rows["corpus"]["tokens"] == sum(result["corpus"]["tokens"].values())
    assert rows["teacher"]["parameters"] == result["teacher"]["parameters"]
    assert rows["student"]["parameters"] == result["student"]["parameters"] - 2  # θ and λ
    assert rows["student"]["tokens"] == 12 * 4 * 24
    assert rows["prune"]["tokens"] == 8 * 4 * 24
    assert rows["soft-labels"]["tokens"] == result["labels"]["tokens"] + 1
    assert rows["soft-labels"]["disk"] == pytest.approx(result["labels"]["bytes"], rel=0.01)
    points, read = result["sensitivity"]["points"], result["sensitivity"]["tokens"]
    assert rows["sensitivity"]["tokens"] == points * read
    left = sum(map(tensor_bytes, (finished / "student").glob("*.safetensors")))
    assert rows["student"]["disk"] == pytest.approx(left, rel=0.2)
    for name in ("teacher", "soft-labels", "student", "sensitivity", "prune", "search-cache"):
        assert rows[name]["seconds"] > 0
        assert 50e6 < rows[name]["memory"] < 4e9
    # The measurement is remembered.
    before = {file: file.stat().st_mtime_ns for file in (own_cache / "micronet-lm").iterdir()}
    assert main(words) == 0
    assert "still to do" in capsys.readouterr().out
    assert {f: f.stat().st_mtime_ns for f in (own_cache / "micronet-lm").iterdir()} == before


def test_a_plan_says_what_has_changed(
    recipe_file: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted((str(f), f.stat().st_mtime_ns) for f in finished.rglob("*"))
    words = ["run", str(recipe_file), "--out", str(finished), "--dry-run", "--json"]
    capsys.readouterr()
    assert main([*words, "--search.cache_size", "50"]) == 0
    rows = {row["stage"]: row for row in json.loads(capsys.readouterr().out)["stages"]}
    again = ["search-cache", "quantize", "pack", "account", "report"]
    assert [name for name, row in rows.items() if row["runs"]] == again
    assert rows["search-cache"]["changes"] == ["cache_size"]
    assert rows["account"]["changes"] == ["search-cache", "quantize", "pack"]
    assert rows["student"]["seconds"] is None
    assert sorted((str(f), f.stat().st_mtime_ns) for f in finished.rglob("*")) == before


def test_only_the_steps_that_are_left_are_counted(
    recipe_file: Path, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(finished, tmp_path / "interrupted")
    file = out / "stages" / "student.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "complete": False}))
    capsys.readouterr()
    words = [
        "run",
        str(recipe_file),
        "--out",
        str(out),
        "--dry-run",
        "--json",
        "--until",
        "student",
    ]
    assert main(words) == 0
    rows = {row["stage"]: row for row in json.loads(capsys.readouterr().out)["stages"]}
    assert (rows["student"]["state"], rows["student"]["tokens"]) == ("begun", 0)


def test_published_texts_are_known_without_a_download(tmp_path: Path) -> None:
    facts = corpus_size(load_recipe("paper/student").corpus, tmp_path / "none")
    assert (facts.words, facts.tokens["train"], facts.id_bytes) == (267_735, 103_227_021, 4)
    facts = corpus_size(load_recipe("wikitext-2/small").corpus, tmp_path / "none")
    assert (facts.words, facts.id_bytes) == (33_278, 2)


def test_memory_has_a_margin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache search also holds three times the hidden states of a split."""
    needed = {"read_memory": 400_000_000, "train_memory": 600_000_000}
    speed = Speed(step_seconds=1.0, read_seconds=1e-3, label_seconds=1e-3, **needed)
    monkeypatch.setattr(costs, "speed_of", lambda _: speed)
    recipes = take_apart("wikitext-2/micronet")
    tokens = {"train": 2_088_628, "valid": 217_646, "test": 245_569}
    stages = costs.Costs(recipes, CorpusSize(words=33_278, tokens=tokens))
    states = 4 * recipes.student.model.width * tokens["valid"]
    assert stages.of("teacher", tmp_path).memory == 1.25 * 600_000_000
    assert stages.of("search-cache", tmp_path).memory == 1.25 * (400_000_000 + 3 * states)
