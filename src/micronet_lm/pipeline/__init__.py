"""From text to a packed model: stages that are skipped, resumed or repeated as needed."""

from micronet_lm.pipeline.recipes import Recipes, split_recipe, take_apart
from micronet_lm.pipeline.runner import PlannedStage, perform, plan, run_stages
from micronet_lm.pipeline.stage import Interrupted, Product, Stage, in_order
from micronet_lm.pipeline.stages import Sources, linked_corpus, stages_of
from micronet_lm.pipeline.workspace import Record, State, Workspace

__all__ = [
    "Interrupted",
    "PlannedStage",
    "Product",
    "Recipes",
    "Record",
    "Sources",
    "Stage",
    "State",
    "Workspace",
    "in_order",
    "linked_corpus",
    "perform",
    "plan",
    "run_stages",
    "split_recipe",
    "stages_of",
    "take_apart",
]
