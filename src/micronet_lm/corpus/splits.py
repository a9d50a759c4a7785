"""The three splits of every corpus and how text is divided among them."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias

from micronet_lm.errors import UsageError

SPLITS = ("train", "valid", "test")
"""For training, for choosing between models, and for reporting."""

Ratio: TypeAlias = tuple[float, float, float]
"""The shares of train, valid and test; their sum is 1."""

DEFAULT_RATIO: Ratio = (0.9, 0.05, 0.05)

Splitting: TypeAlias = Literal["blocks", "documents", "names"]
"""How text is divided: blocks of lines in turn, whole files in turn, or by documents' names."""

MOST_BLOCKS, SMALLEST_BLOCK = 16, 1024
"""Blocks of lines that valid and test have at most, and bytes that a block has at least."""

MANY_DOCUMENTS = 100
"""Files from which on they are not cut, unless one of them is too large."""

LARGEST_FACTOR = 2.0
"""Unknown shares or perplexities of valid and test that differ by more are warned of."""

_FAR = f"a factor of more than {LARGEST_FACTOR:g}; what one says need not hold for the other"

_FEWEST_UNKNOWN = 20
"""Unknown tokens below which a share is meaningless."""


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


def splitting_of(sizes: Sequence[int], ratio: Ratio) -> Splitting:
    """Return how files of these sizes are divided: whole where they are many and none is large."""
    small = max(sizes) <= min(ratio) * sum(sizes) / 2
    return "documents" if len(sizes) >= MANY_DOCUMENTS and small else "blocks"


def document_splits(sizes: Sequence[int], ratio: Ratio) -> list[str]:
    """Return the split of each of many files, a function of their sizes only.

    Each goes where the most bytes are missing for the ratio, so that all splits have files from the
    beginning, the middle and the end.
    """
    shares, held, found, seen = (
        dict(zip(SPLITS, ratio, strict=True)),
        dict.fromkeys(SPLITS, 0),
        [],
        0,
    )
    for size in sizes:
        seen += size
        chosen = max(SPLITS, key=lambda split: shares[split] * seen - held[split])
        held[chosen] += size
        found.append(chosen)
    return found


def block_splits(total: int, ratio: Ratio) -> list[tuple[str, int]]:
    """Return consecutive parts of `total` bytes as split and end, a function of the size only.

    The text is divided into up to 16 equal stretches, so many that a block of valid or test has
    1,024 bytes or more. Each stretch is a third of its train share, its valid block, another third,
    its test block and the last third.
    """
    stretches = min(MOST_BLOCKS, max(1, int(min(ratio[1:]) * total / SMALLEST_BLOCK)))
    third = ratio[0] / 3
    pattern = [("train", third), ("valid", ratio[1]), ("train", third), ("test", ratio[2])]
    pattern.append(("train", third))
    ends = list(accumulate(share for _ in range(stretches) for _, share in pattern))
    names = [split for _ in range(stretches) for split, _ in pattern]
    return [(name, round(total * end / ends[-1])) for name, end in zip(names, ends, strict=True)]


def unknown_disagreement(tokens: Mapping[str, int], unknown: Mapping[str, int]) -> str | None:
    """Warn in one sentence where valid and test have very different shares of unknown words."""
    if max(unknown["valid"], unknown["test"]) < _FEWEST_UNKNOWN:
        return None
    shares = {split: max(unknown[split], 1) / tokens[split] for split in ("valid", "test")}
    if not _differ(*shares.values()):
        return None
    return (
        f"valid and test are unlike: {shares['valid']:.2%} and {shares['test']:.2%} of their "
        f"tokens are unknown words, {_FAR}"
    )


def perplexity_disagreement(valid: float, test: float) -> str | None:
    """Warn in one sentence where a model's perplexities on valid and test are very different."""
    if not _differ(valid, test):
        return None
    return (
        f"valid and test are unlike: the model's perplexities are {valid:,.2f} and {test:,.2f}, "
        f"{_FAR}"
    )


def _differ(one: float, other: float) -> bool:
    return max(one, other) > LARGEST_FACTOR * min(one, other)
