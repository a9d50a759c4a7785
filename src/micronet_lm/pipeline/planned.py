"""A plan with the cost of every stage, as plain values."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from micronet_lm.pipeline.costs import Cost, Costs
from micronet_lm.pipeline.runner import Step
from micronet_lm.pipeline.site import Site, State

NOWHERE = Path("nowhere")


def estimated(
    site: Site, steps: Sequence[Step], costs: Costs, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Estimate what is still to be done; what is complete costs nothing more."""
    rows = []
    for step in steps:
        cost = Cost()
        if step.runs:
            tell(f"Estimating {step.stage.name}")
            # Only what goes on can use what is in its folder.
            going_on = step.state is State.INTERRUPTED
            cost = costs.of(step.stage.name, site.folder(step.stage) if going_on else NOWHERE)
        rows.append(
            {
                "stage": step.stage.name,
                "state": step.state.value,
                "changes": list(step.changes),
                "runs": step.runs,
                **cost.as_json(),
            }
        )
    return rows
