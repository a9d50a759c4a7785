"""Criteria of pruning: the order in which a matrix's weights are pruned.

A criterion is one function in `CRITERIA`: from a matrix to scores of the same shape. The weights of
the lowest scores are pruned first, equal scores in the order of their positions. Weights that are
zero come before all others, whatever their score, so that pruned weights stay pruned.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

CriterionName = Literal["magnitude"]
"""Names of `CRITERIA`."""

Criterion = Callable[[Tensor], Tensor]


def magnitude(weight: Tensor) -> Tensor:
    """Return |w|, as in the paper."""
    return weight.abs()


CRITERIA: dict[str, Criterion] = {"magnitude": magnitude}


def pruning_order(weight: Tensor, criterion: CriterionName = "magnitude") -> Tensor:
    """Return the positions of a matrix's weights, flattened, in the order of pruning."""
    scores = CRITERIA[criterion](weight.detach()).flatten()
    scores = scores.masked_fill(weight.detach().flatten() == 0, -torch.inf)
    # Stable, so that equal scores keep the order of their positions on every machine.
    return torch.argsort(scores, stable=True)
