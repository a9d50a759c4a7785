"""The number format of training's matrix products: what this machine can do, and what a run uses.

`probe.py` measures in processes that may die, `verdict.py` asks it once per machine and remembers
the answer, `products.py` turns the answer and a recipe's `train.precision` into what a run uses.
"""

from micronet_lm.training.precision.products import (
    FLOAT32,
    Products,
    agree_on_products,
    autocast,
    choose_products,
    prepare_process,
    working_products,
)
from micronet_lm.training.precision.verdict import Verdict, machine_verdict

__all__ = [
    "FLOAT32",
    "Products",
    "Verdict",
    "agree_on_products",
    "autocast",
    "choose_products",
    "machine_verdict",
    "prepare_process",
    "working_products",
]
