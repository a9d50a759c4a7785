"""Which weights a sparsity is a share of, and which of them may be pruned (section 4.2).

The paper's model sparsity is ρ = Σ|φ|ρ_φ / Σ|φ| over the parameters φ in Φ. The recipe's key
`prune.weights` says what Φ is; training, counting and tables all use the functions of this file.
"""

from collections.abc import Mapping
from typing import Literal

from micronet_lm.config import ModelConfig
from micronet_lm.layout.slots import Role, Slot, slots

Phi = Literal["matrices", "all"]
"""The choices of `prune.weights`."""

_AUTHORS = frozenset({Role.LAYER, Role.PROJECTION, Role.TABLE})
"""Roles of the matrices that the authors' configurations prune."""


def prunable_sizes(shape: ModelConfig, phi: Phi = "matrices") -> dict[str, int]:
    """Return |φ| of every tensor that may be pruned, by its name in checkpoints."""
    found: dict[str, int] = {}
    last = len(shape.cutoffs)
    for slot in slots(shape):
        if phi == "matrices":
            if slot.role is not Role.POSITIONS:
                found[slot.name] = slot.outputs * slot.inputs
            continue
        if slot.role in _AUTHORS and not _of_last_bin(slot, last):
            found[slot.name] = slot.outputs * slot.inputs
        if slot.role is Role.TABLE and slot.bias and not slot.name.endswith(".0"):
            found[slot.bias] = slot.outputs
    return found


def counted_size(shape: ModelConfig, phi: Phi = "matrices") -> int:
    """Return Σ|φ| over Φ: for `all`, every weight but LayerNorm's, pruned or not."""
    if phi == "matrices":
        return sum(prunable_sizes(shape).values())
    return sum(s.outputs * (s.inputs + (s.bias is not None)) for s in slots(shape))


def even_sparsity(shape: ModelConfig, sparsity: float, phi: Phi = "matrices") -> float:
    """Return the ρ_φ that gives a model sparsity ρ if all prunable tensors have the same."""
    return sparsity * counted_size(shape, phi) / sum(prunable_sizes(shape, phi).values())


def model_sparsity(
    shape: ModelConfig, sparsities: Mapping[str, float], phi: Phi = "matrices"
) -> float:
    """Return ρ from each tensor's ρ_φ; tensors of Φ that are left out have none."""
    sizes = prunable_sizes(shape, phi)
    zeros = sum(sizes[name] * sparsity for name, sparsity in sparsities.items())
    return zeros / counted_size(shape, phi)


def _of_last_bin(slot: Slot, last: int) -> bool:
    """Return whether a matrix is a projection of the last of several bins."""
    return slot.role is Role.PROJECTION and last > 0 and f".{last}." in slot.name
