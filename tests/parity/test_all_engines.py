"""torch, NumPy and native give the same log-probabilities, at thousands of places of each model."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.support.shapes import MANY_WORDS
from tests.support.torch_models import torch_model

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES, TEXT_PLACES
from micronet_lm.runtime.engines import has_native
from micronet_lm.runtime.native import NativeEngine
from micronet_lm.runtime.reference import NumpyEngine
from micronet_lm.training.evaluation import token_losses

pytestmark = pytest.mark.skipif(not has_native(), reason="the native engine is not built")

POSITIONS = 2500
TOLERANCE = 1e-4

MODELS = {
    "plain": Choice(seed=1),
    "cache": Choice(seed=2, cache=300),
    "cache-with-a-ramp": Choice(seed=3, cache=300, lam=0.4, ramp=120),
    "cache-that-fades": Choice(seed=24, cache=900, lam=0.4, ramp=120, fade=250),
    "8-bits-in-a-cache-that-fades": Choice(
        seed=25, bits=8, cache=900, fade=250, places=CODE_PLACES, scale_per_row=True
    ),
    "pruned": Choice(seed=4, cache=300, sparsity=0.5),
    **{
        f"{bits}-bits": Choice(
            seed=bits,
            bits=bits,
            cache=300,
            ramp=50,
            sparsity=0.36,
            places=CODE_PLACES,
            scale_per_row=True,
        )
        for bits in (4, 8, 9, 16)
    },
    "9-bits-as-in-the-text": Choice(
        seed=21, bits=9, table_bits=32, bias_bits=32, cache=300, places=TEXT_PLACES
    ),
    "9-bits-without-cache": Choice(seed=22, bits=9, places=CODE_PLACES),
    "integer-weights-only": Choice(seed=23, bits=9, cache=300),
}


@pytest.mark.parametrize("name", MODELS)
def test_three_engines_agree(name: str, tmp_path: Path) -> None:
    packed = random_model(MANY_WORDS, MODELS[name])
    path = tmp_path / "model.safetensors"
    write_packed(path, packed)
    # Common words come often, so that the cache has something to recall.
    random = np.random.default_rng(7)
    ids = (random.random(POSITIONS + 1) ** 4 * MANY_WORDS.bounds[-1]).astype(np.int64)
    torchs = token_losses(torch_model(packed), ids.astype(np.uint32), chunk=500)
    wanted = -np.concatenate([losses.numpy() for losses, _ in torchs])
    assert wanted.shape == (POSITIONS,)
    scored = NumpyEngine(path).score(ids)
    np.testing.assert_allclose(scored, wanted, rtol=0, atol=TOLERANCE)
    native = NativeEngine(path)
    np.testing.assert_allclose(native.score(ids, threads=2), wanted, rtol=0, atol=TOLERANCE)
    # Word by word, as a session reads; a fifth of the positions take long enough.
    session, stepped = native.start(), []
    for token, following in pairwise(ids[:501]):
        session.feed(int(token))
        stepped.append(session.log_probability(int(following)))
    np.testing.assert_allclose(stepped, wanted[:500], rtol=0, atol=TOLERANCE)
    total = np.exp(session.log_distribution(), dtype=np.float64).sum()
    assert total == pytest.approx(1, abs=1e-5)
