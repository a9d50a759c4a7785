"""Storage, operations and score of a model, exactly; rules `paper` and `challenge`; never torch."""

from micronet_lm.accounting.compression_plan import Plan, carry_out
from micronet_lm.accounting.count import count, differences
from micronet_lm.accounting.recipe_target import describe
from micronet_lm.accounting.rows import Account, Difference, Row
from micronet_lm.accounting.rules import PAPER, Departure, Rules, challenge, choose_rules
from micronet_lm.accounting.run_target import examine
from micronet_lm.accounting.stage_targets import stage_targets
from micronet_lm.accounting.target import Matrix, Rows, Target

__all__ = [
    "PAPER",
    "Account",
    "Departure",
    "Difference",
    "Matrix",
    "Plan",
    "Row",
    "Rows",
    "Rules",
    "Target",
    "carry_out",
    "challenge",
    "choose_rules",
    "count",
    "describe",
    "differences",
    "examine",
    "stage_targets",
]
