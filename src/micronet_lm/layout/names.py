"""Names and shapes of a packed model's weight tensors."""

from collections.abc import Iterator

from micronet_lm.config import ModelConfig
from micronet_lm.layout.slots import slots

NORMS = ("attention_norm", "ffn_norm")
"""The LayerNorms of a block; their values always stay dense and in 32 bits."""


def tensor_shapes(shape: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the stored shape of every weight tensor of a model, by name."""
    found: dict[str, tuple[int, ...]] = {}
    for slot in slots(shape):
        sizes = (slot.outputs, slot.inputs)
        found[slot.name] = sizes[::-1] if slot.transposed else sizes
        if slot.bias:
            found[slot.bias] = (slot.outputs,)
    found.update((name, (shape.width,)) for name in norm_names(shape))
    return found


def is_norm(name: str) -> bool:
    """Return whether a tensor is a gain or a bias of a LayerNorm."""
    return any(f".{norm}." in name for norm in NORMS)


def norm_names(shape: ModelConfig) -> Iterator[str]:
    """Yield the names of the gains and biases of all LayerNorms."""
    for number in range(shape.layers):
        for norm in NORMS:
            yield f"blocks.{number}.{norm}.weight"
            yield f"blocks.{number}.{norm}.bias"
