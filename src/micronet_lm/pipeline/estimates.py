"""A plan with the cost of every stage, as plain values."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from micronet_lm.pipeline.costs import Cost, Costs
from micronet_lm.pipeline.runner import PlannedStage
from micronet_lm.pipeline.workspace import State, Workspace

NOWHERE = Path("nowhere")


def estimated(
    workspace: Workspace, plan: Sequence[PlannedStage], costs: Costs, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return a plan with the estimated cost of every stage that is still to run."""
    rows = []
    for planned in plan:
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
