"""Small packed models, opened with every engine that this installation has."""

from collections.abc import Callable
from pathlib import Path

import pytest

from micronet_lm.artifact import PackedModel, write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.config import CODE_PLACES, ModelConfig
from micronet_lm.runtime.engine import Engine
from micronet_lm.runtime.engines import Name, has_native, open_engine

SHAPE = ModelConfig(
    vocabulary=90,
    cutoffs=(20, 50),
    embedding_widths=(16, 8, 4),
    width=16,
    layers=2,
    heads=2,
    key_width=6,
    value_width=5,
    ffn_width=24,
    context=7,
)
CACHED = Choice(seed=1, cache=12, sparsity=0.3)
INTEGERS = Choice(seed=2, cache=12, sparsity=0.3, bits=9, places=CODE_PLACES)
ENGINES: list[Name] = ["numpy", "native"] if has_native() else ["numpy"]

Opener = Callable[[PackedModel], Engine]


@pytest.fixture(params=ENGINES)
def open_model(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Pack a model and open it."""

    def open_packed_model(model: PackedModel) -> Engine:
        path = tmp_path / "model.safetensors"
        write_packed(path, model)
        return open_engine(path, request.param)

    return open_packed_model


@pytest.fixture(params=[CACHED, INTEGERS], ids=["floats", "integers"])
def engine(request: pytest.FixtureRequest, open_model: Opener) -> Engine:
    return open_model(random_model(SHAPE, request.param))
