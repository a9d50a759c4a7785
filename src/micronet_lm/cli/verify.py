"""`micronet verify`: compare what this program wrote with its checksums."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from micronet_lm.cli.output import harmless, make_table, print_report
from micronet_lm.cli.parsers import Arguments, Verbs, add_verb
from micronet_lm.damage import Finding, findings
from micronet_lm.errors import MicronetError
from micronet_lm.runtime.places import packed_file

_EXAMPLE = """examples:
  micronet verify model.safetensors
  micronet verify runs/demo --json

The exit code is 1 if something is damaged. What version 0.1 wrote has no checksums, nor have the
JSON files of a run or an analysis: their form is checked, and the answer says so.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "verify",
        _run,
        help="check whatever this program wrote for damage",
        description=(
            "Read everything at PATH and compare it with the checksums that were written with it: "
            "a packed file, a checkpoint, a run, a corpus, soft labels, a pipeline with all of "
            "them, a sweep or an analysis, a personal memory, or the sessions of a server."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="what this program wrote")


def _run(arguments: Arguments) -> int:
    path = arguments.path if arguments.path.exists() else packed_file(arguments.path)
    found = list(findings(path))
    report = {
        "path": str(arguments.path),
        "whole": all(finding.whole for finding in found),
        "found": [finding._asdict() for finding in found],
    }
    print_report(report, _shown(found), as_json=arguments.json)
    if damaged := [finding for finding in found if not finding.whole]:
        more = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
        raise MicronetError(damaged[0].told + more)
    return 0


def _shown(found: list[Finding]) -> Iterator[RenderableType]:
    table = make_table("what", "where", "result")
    for finding in found:
        result = finding.told if finding.whole else "damaged"
        table.add_row(finding.kind, harmless(finding.path), Text(result))
    yield table
