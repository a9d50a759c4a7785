"""A bit that flips in what a pipeline made is noticed, and what vanished is made again."""

import json
import shutil
from pathlib import Path

import pytest

from micronet_lm.cli.main import main

pytestmark = pytest.mark.needs_torch  # every test runs the verb `run`


@pytest.fixture
def made(finished: Path, tmp_path: Path) -> Path:
    """A copy of a finished pipeline."""
    out = tmp_path / "pipeline"
    shutil.copytree(finished, out, symlinks=True)
    return out


def flip(file: Path) -> None:
    """Flip one bit near the end of a file."""
    data = bytearray(file.read_bytes())
    data[-(len(data) // 4) - 1] ^= 4
    file.write_bytes(data)


@pytest.mark.parametrize(
    "name", ["quantized/best.safetensors", "corpus/train.npy", "corpus/vocabulary.tsv"]
)
def test_a_flipped_bit_does_not_become_another_packed_file(
    name: str, made: Path, recipe_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It did, with exit code 0."""
    assert main(["verify", str(made), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["whole"]
    flip(made / name)
    assert main(["verify", str(made)]) == 1
    assert str(made / name) in capsys.readouterr().err
    shutil.rmtree(made / "packed")
    if name == "corpus/train.npy":  # packing does not read it, but training does
        shutil.rmtree(made / "student")
    assert main(["run", str(recipe_file), "--out", str(made)]) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert str(made / name) in told
    assert not (made / "packed" / "model.safetensors").exists()


def test_a_packed_file_that_vanished_is_made_again(made: Path, recipe_file: Path) -> None:
    """Its stage was called complete, because its folder was there."""
    packed = made / "packed" / "model.safetensors"
    before = packed.read_bytes()
    packed.unlink()
    assert main(["run", str(recipe_file), "--out", str(made)]) == 0
    assert packed.read_bytes() == before


def test_soft_labels_with_a_flipped_bit_are_refused(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(made / "labels" / "00000.ids.npy")
    assert main(["verify", str(made / "labels")]) == 1
    assert "00000.ids.npy does not match its manifest" in capsys.readouterr().err


def test_a_recipe_that_was_edited_by_hand_is_noticed(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run went on with other settings and said nothing."""
    file = made / "teacher" / "recipe.yaml"
    file.write_text(file.read_text().replace("clip: ", "clip: 1"))
    assert main(["train", "--resume", str(made / "teacher")]) == 1
    assert "recipe.yaml was changed after the run wrote it" in capsys.readouterr().err
    assert main(["verify", str(made / "teacher")]) == 1
