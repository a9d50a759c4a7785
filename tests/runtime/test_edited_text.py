"""Someone who types: the same suggestions as for the whole text, after any edit."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.engines import CACHED
from tests.support.shapes import SMALL

import micronet_lm as mn
from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import random_model
from micronet_lm.runtime.edited_text import EditedText
from micronet_lm.runtime.model import LM


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> LM:
    path: Path = tmp_path_factory.mktemp("edited") / "model.safetensors"
    write_packed(path, random_model(SMALL, CACHED))
    return mn.load(path)


PIECES = st.sampled_from(["the", " ", "a1", "b", ",", "\n", "\r", "é", "  ", "th"])


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(edits=st.lists(st.tuples(st.integers(0, 12), PIECES), min_size=1, max_size=12))
def test_edits_give_what_the_whole_text_gives(lm: LM, edits: list[tuple[int, str]]) -> None:
    edited, text = EditedText(lm), ""
    for removed, added in edits:
        text = text[: len(text) - removed if removed % 3 == 0 else len(text)] + added
        assert edited.suggest(text, 4) == lm.suggest(text, 4)


def test_few_states_are_kept(lm: LM) -> None:
    edited, text = EditedText(lm), "the a1 b2 , the " * 200
    for end in range(0, len(text), 5):
        edited.read(text[:end])
    assert edited.kept < 16
    assert edited.suggest(text[:1600], 3) == lm.suggest(text[:1600], 3)
