"""The three splits of every corpus and how text is divided among them."""

import hashlib
import math
from typing import TypeAlias

from micronet_lm.errors import UsageError

SPLITS = ("train", "valid", "test")
"""For training, for choosing between models, and for reporting."""

Ratio: TypeAlias = tuple[float, float, float]
"""The shares of train, valid and test; their sum is 1."""

DEFAULT_RATIO: Ratio = (0.9, 0.05, 0.05)


def parse_ratio(text: str) -> Ratio:
    """Parse a ratio written as `0.9,0.05,0.05`."""
    try:
        shares = [float(share) for share in text.split(",")]
    except ValueError:
        shares = []
    if len(shares) != 3:
        raise UsageError(
            f"the split must be three numbers separated by commas, got {text!r}: "
            "write the shares of train, valid and test like 0.9,0.05,0.05"
        )
    return check_ratio((shares[0], shares[1], shares[2]))


def check_ratio(ratio: Ratio) -> Ratio:
    """Return the ratio after checking that each share is above 0 and their sum is 1."""
    good = len(ratio) == 3 and all(math.isfinite(share) and share > 0 for share in ratio)
    if not good or abs(sum(ratio) - 1) > 1e-6:
        raise UsageError(
            "the shares of a split must be above 0 and add up to 1, got "
            f"{','.join(f'{share:g}' for share in ratio)}: choose shares like 0.9,0.05,0.05"
        )
    return ratio


def split_of(document: str, ratio: Ratio) -> str:
    """Return the split of a document, which depends only on its name and the ratio."""
    digest = hashlib.sha256(document.encode("utf-8")).digest()
    position = int.from_bytes(digest[:8], "big") / 2**64
    if position < ratio[0]:
        return "train"
    return "valid" if position < ratio[0] + ratio[1] else "test"
