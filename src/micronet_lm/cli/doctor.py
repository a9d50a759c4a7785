"""`micronet doctor`: what this installation is, and what works on this machine."""

import argparse
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from micronet_lm.cli.output import print_json
from micronet_lm.cli.parsers import add_parser
from micronet_lm.errors import MicronetError

_EXAMPLE = """examples:
  micronet doctor
  micronet doctor --json > machine.json
  micronet doctor --again

A bug report should begin with this page. Kernels and number formats are tried in processes that may
die; what is broken is named, and the exit code is 1. What training's products can do is measured
once per machine and remembered; --again measures it anew.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "doctor",
        help="tell what works on this machine",
        description=(
            "Show versions, processor, engine kernels with a self-test of each, torch and what its "
            "products can do, extras, and where things lie."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("--again", action="store_true", help="measure anew what is remembered")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from micronet_lm.diagnosis import described, diagnose

    if sys.stderr.isatty():
        sys.stderr.write("Looking; this takes a few seconds ...\r")
    found = diagnose(again=arguments.again)
    if sys.stderr.isatty():
        sys.stderr.write("\x1b[2K")
    if arguments.json:
        print_json(found)
    else:
        table = Table.grid(padding=(0, 2))
        for name, text in described(found):
            table.add_row(Text(name, style="bold"), Text(text))
        Console().print(table)
    if problems := found["problems"]:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise MicronetError(f"{problems[0]}{more}")
    return 0
