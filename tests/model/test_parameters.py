"""Parameter counts equal the table of facts, to the last digit."""

import pytest
import torch

from micronet_lm.config import load_recipe
from micronet_lm.model import LanguageModel


@pytest.mark.parametrize(
    ("preset", "overrides", "expected"),
    [
        ("paper/student", {"model.context": 65}, 8_298_069),
        ("paper/student", {}, 8_304_213),
        ("paper/student", {"model.context": 129}, 8_310_357),
        ("paper/student", {"model.context": 257}, 8_334_933),
        ("paper/student", {"model.context": 513}, 8_384_085),
        ("paper/student", {"model.context": 1025}, 8_482_389),
        ("paper/teacher", {}, 53_859_529),
        ("paper/full-embedding", {}, 73_566_103),
    ],
)
def test_parameter_counts_are_the_papers(
    preset: str, overrides: dict[str, int], expected: int
) -> None:
    with torch.device("meta"):
        model = LanguageModel(load_recipe(preset, overrides).model)
    assert model.parameter_count() == expected
