"""A plan with the cost of every stage, as plain values."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from micronet_lm.pipeline.corpus_size import corpus_size
from micronet_lm.pipeline.costs import Cost, Costs
from micronet_lm.pipeline.recipes import Recipes
from micronet_lm.pipeline.runner import PlannedStage, plan
from micronet_lm.pipeline.stage import Stage
from micronet_lm.pipeline.stages import Sources
from micronet_lm.pipeline.workspace import State, Workspace

NOWHERE = Path("nowhere")


def estimate_recipe(
    workspace: Workspace,
    recipes: Recipes,
    sources: Sources,
    targets: Sequence[Stage],
    tell: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Plan the stages of one recipe and estimate them; only the measurement is kept."""
    size = corpus_size(recipes.corpus, workspace.root / "corpus", sources.corpus)
    return estimated(workspace, plan(workspace, targets), Costs(recipes, size), tell)


def stage_costs(
    workspace: Workspace, targets: Sequence[Stage], rows: Sequence[dict[str, Any]]
) -> dict[str, Cost]:
    """Return the costs of an estimated plan by the stages' fingerprints."""
    names = [field.name for field in fields(Cost)]
    return {
        planned.stage.fingerprint: Cost(**{name: row[name] for name in names})
        for planned, row in zip(plan(workspace, targets), rows, strict=True)
    }


def estimated(
    workspace: Workspace, stages: Sequence[PlannedStage], costs: Costs, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return a plan with the estimated cost of every stage that is still to run."""
    rows = []
    for planned in stages:
        cost = Cost()
        if planned.runs:
            tell(f"Estimating {planned.stage.name}")
            # Only a resumed stage can use what is in its folder.
            going_on = planned.state is State.INTERRUPTED
            cost = costs.of(
                planned.stage.name, workspace.folder(planned.stage) if going_on else NOWHERE
            )
        rows.append(
            {
                "stage": planned.stage.name,
                "state": planned.state.value,
                "changes": list(planned.changes),
                "runs": planned.runs,
                **cost.as_json(),
            }
        )
    return rows
