"""Small packed models, opened with every engine that this installation has."""

from pathlib import Path

import pytest
from tests.support.engines import CACHED, ENGINES, INTEGERS, Opener
from tests.support.shapes import SMALL

from micronet_lm.artifact import PackedModel, write_packed
from micronet_lm.artifact.random_model import random_model
from micronet_lm.runtime.engine import Engine
from micronet_lm.runtime.engines import open_engine


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
    return open_model(random_model(SMALL, request.param))
