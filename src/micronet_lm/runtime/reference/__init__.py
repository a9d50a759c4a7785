"""The NumPy engine: a readable implementation of docs/arithmetic.md, over chunks of tokens."""

from micronet_lm.runtime.reference.engine import NumpyEngine

__all__ = ["NumpyEngine"]
