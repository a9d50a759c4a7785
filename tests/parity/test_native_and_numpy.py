"""The native engine gives the NumPy engine's numbers: thousands of positions of random models."""

from pathlib import Path

import numpy as np
import pytest
from tests.support.shapes import ONE_BIN, UNEVEN

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import PLACEMENTS, ModelConfig, Place
from micronet_lm.runtime.engine import Session
from micronet_lm.runtime.engines import has_native
from micronet_lm.runtime.native import NativeEngine, kernel_sets
from micronet_lm.runtime.reference import NumpyEngine

pytestmark = pytest.mark.skipif(not has_native(), reason="the native engine is not built")

PLACES = {**PLACEMENTS, "all": frozenset(Place)}
TOKENS = 120
CASES = [
    (bits, places)
    for bits in (4, 8, 9, 16, 32)
    for places in PLACES
    if bits < 32 or places == "none"
]


@pytest.mark.parametrize("shape", [UNEVEN, ONE_BIN], ids=["three-bins", "one-bin"])
@pytest.mark.parametrize(("bits", "places"), CASES, ids=lambda value: str(value))
@pytest.mark.parametrize("kind", ["sparse-cached", "row-steps"])
def test_scores_and_distributions_are_those_of_numpy(
    shape: ModelConfig, bits: int, places: str, kind: str, tmp_path: Path
) -> None:
    by_row = kind == "row-steps"
    choice = Choice(
        seed=bits,
        cache=0 if by_row else 20,
        theta=0.1,
        lam=0.2,
        sparsity=0.0 if by_row else 0.4,
        bits=bits,
        position_bits=bits if by_row else 32,
        scale_per_row=by_row,
        places=PLACES[places],
    )
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(shape, choice))
    ids = np.random.default_rng(bits).integers(0, shape.vocabulary, TOKENS)
    reference = NumpyEngine(path)
    scores = reference.score(ids)
    session = reference.start()
    session.feed_many(ids)
    distribution = session.log_distribution()
    for name in (kernels.name for kernels in kernel_sets() if kernels.runs):
        engine = NativeEngine(path, kernels=name)
        assert engine.kernels == name
        np.testing.assert_allclose(engine.score(ids), scores, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(engine.score(ids, threads=3), engine.score(ids))
        stepping = engine.start()
        for token in ids[:50]:
            stepping.feed(int(token))
        stepping.feed_many(ids[50:])
        answer = stepping.log_distribution()
        np.testing.assert_allclose(answer, distribution, rtol=0, atol=1e-5)
        best, values = stepping.top_k(7)
        order = np.argsort(-answer, kind="stable")[:7]
        np.testing.assert_array_equal(best, order)
        np.testing.assert_array_equal(values, answer[order])


def test_samples_are_those_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_packed(path, random_model(UNEVEN, Choice(seed=3, cache=20)))
    sessions: list[Session] = [NumpyEngine(path).start(), NativeEngine(path).start()]
    for session in sessions:
        session.feed_many([5, 200, 17, 5])
    random = np.random.default_rng(0)
    for _ in range(300):
        u, temperature = random.uniform(), random.uniform(0.3, 2.0)
        k, p = int(random.integers(0, 20)), float(random.choice([1.0, 0.9, 0.5]))
        one, other = (session.sample(u, temperature, k, p) for session in sessions)
        assert one == other
