"""Packed models with every engine that this installation has."""

from collections.abc import Callable

from micronet_lm.artifact import PackedModel
from micronet_lm.artifact.random_model import Choice
from micronet_lm.config import CODE_PLACES
from micronet_lm.runtime.engine import Engine
from micronet_lm.runtime.engines import Name, has_native

CACHED = Choice(seed=1, cache=12, sparsity=0.3)
INTEGERS = Choice(seed=2, cache=12, sparsity=0.3, bits=9, places=CODE_PLACES)
ENGINES: list[Name] = ["numpy", "native"] if has_native() else ["numpy"]

Opener = Callable[[PackedModel], Engine]
"""Packs a model and opens it."""
