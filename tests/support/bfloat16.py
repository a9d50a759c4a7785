"""For tests of bfloat16 products: some processors end the process that tries them."""

import pytest

from micronet_lm.training.precision.products import Products, survives_products


def skip_without_bfloat16() -> None:
    """Skip a test where bfloat16 products end a process like this one."""
    if not survives_products(Products(precision="bfloat16")):
        pytest.skip("bfloat16 products end the process on this machine")
