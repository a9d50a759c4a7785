"""What the paper's models cost, counted from their recipes: nothing is trained for it."""

from fractions import Fraction

from micronet_lm.accounting import Plan, Target, carry_out, count, describe
from micronet_lm.config import merge_recipe
from micronet_lm.layout import PRUNABLE, Role, slots
from micronet_lm.pipeline import Recipes, take_apart
from micronet_lm.pipeline.stages import MODELS, stages_of


def paper_count(preset: str, what: str, stage: str | None = None) -> float:
    """Count a paper's model as it leaves a stage, or as it is in the end.

    Zeros are taken as spread evenly over the matrices: how the authors' were, the paper does not
    tell, and operations depend on it a little.
    """
    recipes = take_apart(preset)
    target = _target(recipes, stage or _last(recipes))
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
    """32-bit parameters to store; a model that is dense and unquantized has no masks to count."""
    dense = all(matrix.nonzeros == matrix.size for matrix in target.matrices.values())
    return target.parameters if dense and not target.quantized else count(target).storage


def _target(recipes: Recipes, stage: str) -> Target:
    """Describe the model of a recipe as it leaves a stage."""
    whole = recipes.whole
    if stage not in MODELS:
        return describe(recipes.trained[stage], stage)
    reached = MODELS.index(stage)
    recipe = recipes.student
    if whole.search and reached >= MODELS.index("search-cache"):
        recipe = merge_recipe(recipe, {"cache.size": whole.search.cache_size})
    target = describe(recipe, stage)
    density = None
    if whole.prune and reached >= MODELS.index("prune"):
        density = _density(target, Fraction(str(whole.prune.sparsity)))
    if whole.quantize and reached >= MODELS.index("quantize"):
        return carry_out(Plan(density=density, bits=whole.quantize.bits), target)
    return carry_out(Plan(density=density), target)


def _density(target: Target, sparsity: Fraction) -> Fraction:
    """Density of the prunable matrices; the authors' sparsity is a share of all weights.

    Of their published model's 8,296,021 weights, biases and position tables included, 5,326,376
    are not zero, which is 0.358 of all.
    """
    prunable = sum(s.outputs * s.inputs for s in slots(target.shape) if s.role in PRUNABLE)
    every = sum(matrix.size + matrix.bias_size for matrix in target.matrices.values())
    return 1 - sparsity * every / prunable


def _last(recipes: Recipes) -> str:
    """The last of the stages that change the model."""
    return [name for name in MODELS if name in stages_of(recipes)][-1]


def _embedding(target: Target) -> int:
    """Weights of the tables and of their projections, as the paper counts embeddings."""
    counted = {Role.TABLE, Role.PROJECTION}
    return sum(slot.outputs * slot.inputs for slot in slots(target.shape) if slot.role in counted)
