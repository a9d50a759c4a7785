"""Small packed models of every kind."""

from pathlib import Path

import pytest
from tests.support.shapes import PACKED

from micronet_lm.artifact import PackedModel, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES, Place

CHOICES = {
    "dense": Choice(seed=1),
    "cache": Choice(seed=2, cache=7),
    "sparse": Choice(seed=3, sparsity=0.5, cache=7),
    "all pruned": Choice(seed=4, sparsity=1.0),
    "2 bits": Choice(seed=5, bits=2, sparsity=0.7, places=CODE_PLACES),
    "9 bits": Choice(seed=6, bits=9, sparsity=0.36, cache=3, places=frozenset(Place)),
    "16 bits": Choice(seed=7, bits=16, position_bits=16, scale_per_row=True, places=CODE_PLACES),
    "partly": Choice(seed=8, bits=7, table_bits=32, bias_bits=32, sparsity=0.3, activation_bits=5),
    "n-grams": Choice(seed=10, bits=6, cache=3, ngrams=3),
    "own widths": Choice(
        seed=9, bits=3, table_bits=11, bias_bits=5, activation_bits=8, places=[Place.HIDDEN]
    ),
}


@pytest.fixture(params=CHOICES, ids=lambda name: name.replace(" ", "-"))
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[PackedModel, Path]:
    model = random_model(PACKED, CHOICES[request.param])
    path = tmp_path / "model.safetensors"
    write_packed(path, model)
    return model, path
