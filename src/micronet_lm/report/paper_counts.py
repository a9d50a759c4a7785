"""The costs of the paper's models, counted from their recipes without training."""

from fractions import Fraction
from functools import cache

from micronet_lm.accounting import Target, count, describe, stage_targets
from micronet_lm.layout import Role, slots
from micronet_lm.pipeline import Recipes, take_apart


@cache
def paper_count(preset: str, what: str, stage: str | None = None) -> float:
    """Return a number of a paper's model after a stage, or after the last.

    Zeros are where the authors' configurations have them.
    """
    target = _target(take_apart(preset), stage)
    match what:
        case "parameters":
            return target.parameters
        case "embedding":
            return _embedding(target)
        case "rest":
            return target.parameters - _embedding(target)
        case "storage":
            return float(stored(target))
        case "operations":
            return float(count(target).operations)
        case "score":
            return float(count(target).score)
    raise ValueError(what)


def stored(target: Target) -> Fraction | int:
    """Return the storage in 32-bit parameters; a dense, unquantized model has no masks."""
    dense = all(matrix.nonzeros == matrix.size for matrix in target.matrices.values())
    return target.parameters if dense and not target.quantized else count(target).storage


def _target(recipes: Recipes, stage: str | None) -> Target:
    """Return the target of a recipe's model after a stage, or after the last."""
    if stage == "teacher":
        return describe(recipes.trained[stage], stage)
    targets = stage_targets(recipes.whole, recipes.name)
    return targets[stage] if stage else list(targets.values())[-1]


def _embedding(target: Target) -> int:
    """Return the number of weights of tables and projections, which the paper calls embeddings."""
    counted = {Role.TABLE, Role.PROJECTION}
    return sum(slot.outputs * slot.inputs for slot in slots(target.shape) if slot.role in counted)
