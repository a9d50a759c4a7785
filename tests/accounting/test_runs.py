"""A run is counted from what its checkpoint holds, and without torch."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.support.stored_runs import RECIPE, SHARES, ones, write_run

from micronet_lm.accounting import challenge, count, describe, examine
from micronet_lm.errors import RunError, UsageError
from micronet_lm.runs import is_run, run_corpus, run_recipe


def test_a_run_without_zeros_is_its_recipe(tmp_path: Path) -> None:
    run = write_run(tmp_path, ones())
    assert is_run(run)
    assert not is_run(tmp_path / "nothing")
    found, said = examine(run, run_recipe(run), SHARES), describe(RECIPE, str(run), SHARES, "given")
    assert found == said
    assert count(found, challenge()) == count(said, challenge())


def test_zeros_are_counted_where_they_are(tmp_path: Path) -> None:
    held = ones()
    held["blocks.1.inner.weight"][3] = 0  # a row without weights
    held["blocks.1.inner.weight"][4, :5] = 0
    held["blocks.1.inner.bias"][[4, 6]] = 0
    held["blocks.0.attention.positions"][:, 2] = 0  # one position without scores
    held["embedding.tables.2"][:, 1] = 0
    found = examine(write_run(tmp_path, held), RECIPE, SHARES)
    inner = found.matrices["blocks.1.inner.weight"]
    assert {(rows.nonzeros, rows.biased, rows.count) for rows in inner.rows} == {
        (0, True, 1),
        (3, False, 1),
        (8, False, 1),
        (8, True, 9),
    }
    assert (inner.nonzeros, inner.bias_nonzeros) == (96 - 8 - 5, 10)
    positions = found.matrices["blocks.0.attention.positions"].rows
    assert [(rows.nonzeros, rows.count) for rows in positions] == [(0, 1), (3, 6)]
    assert found.matrices["embedding.tables.2"].nonzeros == 20
    assert found.parameters == describe(RECIPE, "dense", SHARES).parameters
    rows = {(row.label.part, row.label.name): row for row in count(found, challenge()).rows}
    # By hand: an empty row with a bias needs no add, 3 weights need 2, 8 need 7, and with bias 8.
    assert rows["layer 2", "inner"].adds == 0 + 2 + 7 + 9 * 8
    assert rows["layer 2", "inner"].multiplies == 83
    # Two heads score six positions with three weights each; the seventh adds nothing.
    assert rows["layer 1", "position scores"].adds == 2 * 6 * 3


def test_what_is_wrong_with_a_run_is_said(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ones())
    with pytest.raises(RunError, match=r"last\.safetensors does not exist; has the run saved"):
        examine(run, RECIPE, SHARES, checkpoint="last")
    (run / "best.safetensors").rename(run / "last.safetensors")
    with pytest.raises(RunError, match="take --checkpoint last"):
        examine(run, RECIPE, SHARES)
    assert examine(run, RECIPE, SHARES, checkpoint="last").parameters
    with pytest.raises(UsageError, match="for each of the model's 3 bins, got 2"):
        examine(run, RECIPE, (1, 2), checkpoint="last")
    with pytest.raises(UsageError, match="must be 0 or more and not all 0, got 0,0,0"):
        examine(run, RECIPE, (0, 0, 0), checkpoint="last")

    short = ones()
    del short["blocks.1.outer.bias"]
    with pytest.raises(RunError, match=r"it has no model\.blocks\.1\.outer\.bias"):
        examine(write_run(tmp_path / "short", short), RECIPE, SHARES)
    wrong = {**ones(), "embedding.tables.0": np.ones((9, 8), np.float32)}
    with pytest.raises(RunError, match=r"has the shape \(9, 8\)"):
        examine(write_run(tmp_path / "wrong", wrong), RECIPE, SHARES)
    (tmp_path / "wrong" / "best.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(RunError, match="is damaged"):
        examine(tmp_path / "wrong", RECIPE, SHARES)
    (run / "recipe.yaml").write_text("model: [", encoding="utf-8")
    with pytest.raises(RunError, match="is damaged"):
        run_recipe(run)
    with pytest.raises(RunError, match=r"corpus\.json cannot be read"):
        run_corpus(run)
    (run / "corpus.json").write_text(json.dumps({"path": "../data", "fingerprint": "abc"}))
    assert run_corpus(run) == (tmp_path / "data", "abc")
