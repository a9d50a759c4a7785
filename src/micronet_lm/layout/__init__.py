"""The layout of a model of a given shape: matrices, names of tensors, bits; never torch.

Building, training, counting and packing a model all use this one layout.
"""

from micronet_lm.layout.names import is_norm, norm_names, tensor_shapes
from micronet_lm.layout.slots import EMBEDDINGS, Role, Slot, slots, vectors
from micronet_lm.layout.sparsity import (
    Phi,
    counted_size,
    even_sparsity,
    model_sparsity,
    prunable_sizes,
)
from micronet_lm.layout.widths import Width, bias_bits_of, bits_of, scale_count, widths

__all__ = [
    "EMBEDDINGS",
    "Phi",
    "Role",
    "Slot",
    "Width",
    "bias_bits_of",
    "bits_of",
    "counted_size",
    "even_sparsity",
    "is_norm",
    "model_sparsity",
    "norm_names",
    "prunable_sizes",
    "scale_count",
    "slots",
    "tensor_shapes",
    "vectors",
    "widths",
]
