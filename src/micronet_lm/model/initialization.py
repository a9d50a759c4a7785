"""Initial values of the weights."""

import math

import torch
from torch import nn


@torch.no_grad()
def initialize(model: nn.Module) -> None:
    """Fill all parameters from torch's global generator.

    Matrices are normal with the standard deviation 1/√(inputs), so that every layer keeps the
    scale of its input. The two per block that end in a residual sum are smaller by √(2L), so that
    the sum of all branches has the scale of one. Tables start small (0.02), because they are also
    the weights of the softmax, whose logits should begin near zero; position tables start at
    zero, so that attention begins without a preference. Training then sets the softmax's biases
    to the words' frequencies (`AdaptiveSoftmax.start_from_frequencies`).
    """
    branches = 2 * sum(1 for name, _ in model.named_modules() if name.endswith(".attention"))
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or ".biases." in name:
            parameter.zero_()
        elif "norm." in name:
            parameter.fill_(1.0)
        elif name.endswith("positions"):
            parameter.zero_()
        elif ".tables." in name or name.endswith("tail_weight"):
            nn.init.normal_(parameter, std=0.02)
        else:
            std = 1 / math.sqrt(parameter.shape[1])
            if name.endswith(("attention.output.weight", "outer.weight")):
                std /= math.sqrt(branches)
            nn.init.normal_(parameter, std=std)
