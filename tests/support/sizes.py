"""Other sizes of pieces, so that tiny operands come in several."""

from dataclasses import replace
from typing import Any

import pytest

from micronet_lm.model import sizes


def set_sizes(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Change sizes of the CPU's pieces."""
    monkeypatch.setattr(sizes, "CPU", replace(sizes.CPU, **changes))
