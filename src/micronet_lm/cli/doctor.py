"""`micronet doctor`: what this installation is, and what works on this machine."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from micronet_lm.cli.output import print_report
from micronet_lm.cli.parsers import Arguments, Verbs, add_verb
from micronet_lm.errors import MicronetError

_EXAMPLE = """examples:
  micronet doctor
  micronet doctor --json > machine.json
  micronet doctor --again

A bug report should begin with this page. Kernels and number formats are tried in processes that may
die; what is broken is named, and the exit code is 1. What training's products can do is measured
once per machine and remembered; --again measures it again.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "doctor",
        _run,
        help="show what works on this machine",
        description=(
            "Show versions, processor, engine kernels with a self-test of each, torch and what its "
            "products can do, extras, and the folders in use."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("--again", action="store_true", help="measure again what is remembered")


def _run(arguments: Arguments) -> int:
    from micronet_lm.diagnosis import diagnose

    if sys.stderr.isatty():
        sys.stderr.write("Looking; this takes a few seconds ...\r")
    found = diagnose(again=arguments.again)
    if sys.stderr.isatty():
        sys.stderr.write("\x1b[2K")
    print_report(found, _shown(found), as_json=arguments.json)
    if problems := found["problems"]:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise MicronetError(f"{problems[0]}{more}")
    return 0


def _shown(found: Mapping[str, Any]) -> Iterator[RenderableType]:
    from micronet_lm.diagnosis import described

    table = Table.grid(padding=(0, 2))
    for name, text in described(found):
        table.add_row(Text(name, style="bold"), Text(text))
    yield table
