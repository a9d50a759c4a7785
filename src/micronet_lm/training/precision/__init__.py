"""The precision of training's matrix products: what works on this machine, and what a run uses.

`probe.py` measures in child processes, which may crash; `verdict.py` runs it once per machine and
keeps the answer; `products.py` chooses what a run uses from the answer and `train.precision`;
`scaling.py` keeps gradients in the range of fp16.
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
from micronet_lm.training.precision.scaling import LossScaler
from micronet_lm.training.precision.verdict import Verdict, machine_verdict

__all__ = [
    "FLOAT32",
    "LossScaler",
    "Products",
    "Verdict",
    "agree_on_products",
    "autocast",
    "choose_products",
    "machine_verdict",
    "prepare_process",
    "working_products",
]
