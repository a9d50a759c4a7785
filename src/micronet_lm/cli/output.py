"""Where verbs write: results to standard output, everything else to standard error."""

import json
import sys
from typing import Any


def print_json(report: Any) -> None:
    """Print one JSON object on standard output: all that a verb with --json prints there."""
    print(json.dumps(report))  # noqa: T201


def print_text(text: str, *, end: str = "\n") -> None:
    """Print a result for people on standard output."""
    print(text, end=end)  # noqa: T201


def tell(sentence: str) -> None:
    """Report on standard error how work goes."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
