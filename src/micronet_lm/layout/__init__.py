"""The layout of a model of a given shape: matrices, names of tensors, bits; never torch.

Building, training, counting and packing a model all use this one layout.
"""

from micronet_lm.layout.names import is_norm, norm_names, tensor_shapes
from micronet_lm.layout.slots import EMBEDDINGS, PRUNABLE, Role, Slot, slots, vectors
from micronet_lm.layout.widths import Width, bias_bits_of, bits_of, scale_count, widths

__all__ = [
    "EMBEDDINGS",
    "PRUNABLE",
    "Role",
    "Slot",
    "Width",
    "bias_bits_of",
    "bits_of",
    "is_norm",
    "norm_names",
    "scale_count",
    "slots",
    "tensor_shapes",
    "vectors",
    "widths",
]
