"""What a training step sees is a function of the seed and the step alone."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from micronet_lm.corpus.sampling import Sampler
from micronet_lm.errors import CorpusError

IDS = np.arange(10_000, dtype=np.uint16)


def sampler(**settings: object) -> Sampler:
    defaults: dict[str, object] = {"sampling": "random", "batch": 4, "window": 100, "seed": 0}
    return Sampler(IDS, **{**defaults, **settings})  # type: ignore[arg-type]


@given(step=st.integers(0, 10_000), seed=st.integers(0, 100))
def test_targets_are_the_inputs_moved_on_by_one(step: int, seed: int) -> None:
    for sampling in ("random", "stream"):
        rows = sampler(sampling=sampling, seed=seed).rows(step)
        assert rows.inputs.shape == rows.targets.shape == (4, 100)
        assert (rows.targets == rows.inputs + 1).all()  # the ids count up
        assert (rows.inputs[:, 0] == rows.starts).all()


def test_no_token_is_seen_twice_in_an_epoch() -> None:
    one = sampler()
    tiles = (10_000 - 100) // 100
    seen = np.concatenate([one.rows(step).inputs.ravel() for step in range(tiles // 4)])
    assert len(np.unique(seen)) == len(seen)
    assert len(seen) > 0.95 * 9_900


def test_epochs_differ_in_order_and_in_place() -> None:
    one = sampler(batch=99)
    first, second = one.rows(0).starts, one.rows(1).starts
    assert sorted(first % 100)[0] == sorted(first % 100)[-1]
    assert not np.array_equal(first, second)
    assert first[0] % 100 != second[0] % 100


def test_same_seed_same_rows_in_any_order() -> None:
    one, other = sampler(seed=7), sampler(seed=7)
    later = other.rows(60)
    assert np.array_equal(one.rows(3).inputs, other.rows(3).inputs)
    assert np.array_equal(one.rows(60).inputs, later.inputs)
    assert not np.array_equal(sampler(seed=8).rows(3).inputs, one.rows(3).inputs)


def test_processes_take_their_own_rows_of_the_same_batch() -> None:
    whole = sampler().rows(5)
    halves = [sampler().rows(5, first, 2) for first in (0, 2)]
    assert np.array_equal(np.concatenate([half.inputs for half in halves]), whole.inputs)


def test_streams_are_contiguous_and_begin_anew_after_a_pass() -> None:
    one = sampler(sampling="stream")
    length = 9_999 // 4
    windows = [one.rows(step) for step in range(length // 100 + 1)]
    assert [rows.fresh for rows in windows] == [True] + [False] * (len(windows) - 2) + [True]
    for before, after in pairwise(windows[:-1]):
        assert (after.starts == before.starts + 100).all()
        assert (after.inputs[:, 0] == before.targets[:, -1]).all()
    assert (windows[0].starts == [0, length, 2 * length, 3 * length]).all()


@pytest.mark.parametrize(
    ("sampling", "batch", "window", "needed"),
    [("random", 1, 5001, "10,002"), ("stream", 10, 1000, "10,001")],
)
def test_a_text_that_is_too_short(sampling: str, batch: int, window: int, needed: str) -> None:
    with pytest.raises(CorpusError, match=f"10,000 tokens, .* need {needed}: lower train"):
        sampler(sampling=sampling, batch=batch, window=window)


def lines_of_seven(**settings: object) -> Sampler:
    """A text in which every seventh word is a line end, 0."""
    ids = (np.arange(10_000) % 7).astype(np.uint16)
    shape = {"sampling": "random", "batch": 4, "window": 100, "seed": 0, "line_end": 0}
    return Sampler(ids, **{**shape, **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_a_share_of_the_windows_begins_at_a_line_end(share: float) -> None:
    plain, own = lines_of_seven(), lines_of_seven(beginnings=share)
    before = np.concatenate([plain.rows(step).starts for step in range(50)])
    after = np.concatenate([own.rows(step).starts for step in range(50)])
    moved = after - before
    chosen = np.arange(1, 201) * share // 1 > np.arange(200) * share // 1
    assert chosen.sum() == round(200 * share)
    assert (after[chosen] % 7 == 0).all()
    assert ((moved >= 0) & (moved < 7)).all()
    assert (moved[~chosen] == 0).all()


def test_a_beginning_after_the_last_line_end_is_the_first() -> None:
    ids = np.ones(400, dtype=np.uint16)
    ids[3] = 0
    settings: dict[str, object] = {"batch": 1, "window": 100, "seed": 0}
    one = Sampler(ids, sampling="random", beginnings=1.0, line_end=0, **settings)  # type: ignore[arg-type]
    assert {int(one.rows(step).starts[0]) for step in range(20)} == {3}


def test_a_text_without_lines_has_no_beginnings() -> None:
    with pytest.raises(CorpusError, match="no line end that a whole window follows"):
        sampler(beginnings=0.5, line_end=20_000)
