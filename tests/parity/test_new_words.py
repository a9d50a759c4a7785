"""torch, NumPy and native give texts with new words the same probabilities."""

from pathlib import Path

import numpy as np
import pytest
from tests.support.engines import CACHED, ENGINES, INTEGERS
from tests.support.shapes import SMALL
from tests.support.torch_models import torch_model

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import Choice, random_model
from micronet_lm.errors import CorpusError
from micronet_lm.runtime.engines import open_engine
from micronet_lm.training.open_evaluation import open_log_probabilities

SPELLED = [-9.0, -17.5, -4.0]


@pytest.mark.parametrize(
    "choice",
    [CACHED, INTEGERS, Choice(seed=3), Choice(seed=4, cache=40, ramp=30, fade=7)],
    ids=["floats", "integers", "no-cache", "ramp-and-fade"],
)
def test_new_words_in_all_three(choice: Choice, tmp_path: Path) -> None:
    packed = random_model(SMALL, choice)
    path = tmp_path / "model.safetensors"
    write_packed(path, packed)
    size, unknown = len(packed.words), list(packed.words).index("<unk>")
    ids = np.random.default_rng(0).integers(size, size=300)
    ids[::9], ids[::31], ids[5], ids[7] = size, size + 1, size + 2, unknown
    model = torch_model(packed)
    found = [open_log_probabilities(model, ids, SPELLED, unknown, chunk=n) for n in (4032, 37)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)
    for name in ENGINES:
        scores = open_engine(path, name).score_open(ids, SPELLED)
        np.testing.assert_allclose(scores, found[0], atol=2e-4)
    with pytest.raises(CorpusError, match="has no spelling"):
        open_log_probabilities(model, ids, SPELLED[:1], unknown)
