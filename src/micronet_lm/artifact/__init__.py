"""The packed file: one small safetensors file with everything needed to run a model."""

from micronet_lm.artifact.packed_model import CacheParameters, PackedModel, Weights
from micronet_lm.artifact.reader import PackedFile, open_packed, read_packed
from micronet_lm.artifact.writer import write_packed

__all__ = [
    "CacheParameters",
    "PackedFile",
    "PackedModel",
    "Weights",
    "open_packed",
    "read_packed",
    "write_packed",
]
