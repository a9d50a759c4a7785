"""What the verbs that run a packed file share: their options, and opening the file."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micronet_lm.cli.parsers import Noted
from micronet_lm.errors import UsageError

if TYPE_CHECKING:
    from micronet_lm.runtime.model import LM

DEFAULT = Path("model.safetensors")
"""The packed file that is taken where none is named; the demo where it is not there either."""

SHOWN = 5
"""Unknown words that are named at most."""


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the choice of a packed file and of its engine."""
    parser.add_argument(
        *("-m", "--model"),
        type=Path,
        default=DEFAULT,
        metavar="FILE",
        help="the packed model (default: %(default)s if it is there, else the demo's own model)",
    )
    add_engine(parser)


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the choice of an engine."""
    parser.add_argument(
        "--engine",
        action=Noted,
        choices=["auto", "native", "numpy"],
        default="auto",
        help="what computes; auto takes native where it is built (default: %(default)s)",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add the number of threads."""
    parser.add_argument(
        "--threads",
        action=Noted,
        type=int,
        default=1,
        metavar="N",
        help="threads; they change only the speed (default: %(default)s)",
    )


def check_count(option: str, value: int, least: int = 1) -> None:
    """Refuse a number that is too small."""
    if value < least:
        raise UsageError(f"{option} {value} is too small; give {least} or more")


def warn_of_unknown_words(lm: "LM", text: str) -> None:
    """Say which words of a text the model does not know: it answers as if they were all one."""
    unknown = lm.encoder.unknown_words(text)
    if unknown:
        distinct = list(dict.fromkeys(unknown))
        named = ", ".join(map(repr, distinct[:SHOWN])) + (", ..." if distinct[SHOWN:] else "")
        number = len(lm.encoder.tokens(text))
        sys.stderr.write(
            f"micronet: {len(unknown)} of {number} tokens are not in the model's vocabulary and "
            f"are read as <unk>: {named}\n"
        )


def unknown_share(unknown: int, tokens: int) -> dict[str, float]:
    """How many of the predicted tokens are `<unk>`, for a report."""
    return {"unknown": unknown, "unknown_share": unknown / tokens}


def unknown_sentence(told: Mapping[str, Any]) -> str:
    """Say how much of a perplexity is that of `<unk>`; nothing where no token is."""
    if not told["unknown"]:
        return ""
    return (
        f"{told['unknown']:,} of these tokens ({told['unknown_share']:.1%}) are <unk>: which word "
        "stands there was not asked, so the perplexity is lower than that of the text itself\n"
    )


def opened(path: Path, engine: str) -> "LM":
    """Open a packed file with an engine; the one that ships where nothing is named or there."""
    from micronet_lm.runtime.model import load
    from micronet_lm.runtime.places import shipped_model

    if path == DEFAULT and not path.is_file():
        path = shipped_model()
    return load(path, engine)  # type: ignore[arg-type]  # argparse lets only these pass
