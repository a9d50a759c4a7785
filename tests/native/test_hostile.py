"""Hostile files through the binding: refused in a sentence, or used without harm.

The native tests do the same under sanitizers; here the numbers of Python's process are at stake.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.shapes import LEAST_NATIVE

from micronet_lm.artifact import Weights, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES
from micronet_lm.errors import ArtifactError, InferenceError
from micronet_lm.runtime.native import NativeEngine


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("hostile") / "model.safetensors"
    choice = Choice(cache=3, sparsity=0.4, bits=9, places=CODE_PLACES)
    # Without a checksum, which would refuse every change before it is looked at.
    write_packed(path, random_model(LEAST_NATIVE, choice), with_checksum=False)
    return path.read_bytes()


def test_truncations_at_every_length_are_refused(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.safetensors"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ArtifactError) as caught:
            NativeEngine(path)
        assert "\n" not in str(caught.value)


def test_flipped_bits_are_refused_or_do_no_harm(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "flipped.safetensors"
    opened = 0
    for place in range(len(whole)):
        spoiled = bytearray(whole)
        spoiled[place] ^= 1 << (place * 5 + place // 8) % 8
        path.write_bytes(spoiled)
        try:
            engine = NativeEngine(path)
        except ArtifactError:
            continue
        opened += 1
        session = engine.start()
        try:
            session.feed_many([1, 7, 3, 0])
            total = np.exp(session.log_distribution()).sum()
            assert total == pytest.approx(1, abs=1e-4)
        except InferenceError:
            continue
    assert 0 < opened < len(whole)


@pytest.mark.parametrize("bits", [5, 32])
def test_a_tensor_in_its_longer_form_is_refused(bits: int, tmp_path: Path) -> None:
    """As by the Python reader: a file takes the bytes that are counted for it."""
    table, path = "embedding.tables.1", tmp_path / "longer.safetensors"
    for sparsity in (0.7, 0.0):
        model = random_model(LEAST_NATIVE, Choice(bits=bits, sparsity=sparsity))
        own = model.tensors[table]
        other = LongerForm(values=own.values, scales=own.scales, bits=own.bits)
        write_packed(path, replace(model, tensors={**model.tensors, table: other}))
        with pytest.raises(ArtifactError, match=f"{table}.* the longer of its two forms"):
            NativeEngine(path)


class LongerForm(Weights):
    """A tensor that is written in the longer of its two forms."""

    @property
    def sparse(self) -> bool:
        return not super().sparse
