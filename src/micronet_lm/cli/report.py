"""`micronet report`: one page about a pipeline or a run."""

import argparse
from pathlib import Path

from micronet_lm.cli.output import print_json, print_text
from micronet_lm.cli.parsers import add_parser
from micronet_lm.errors import RunError
from micronet_lm.runs import is_run

_EXAMPLE = """examples:
  micronet report runs/demo
  micronet report runs/small --out reports/small

The HTML page is complete in itself and opens without a network; the Markdown has its pictures
beside it. 'micronet run' writes a report at its end.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = add_parser(
        verbs,
        "report",
        help="write one page about a pipeline or a run",
        description=(
            "Write one self-contained HTML page about the folder of a pipeline or of a run, and "
            "the same as Markdown: summary, pipeline, curves, sensitivity, accounting, samples, "
            "environment and the commands to repeat it."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("target", type=Path, metavar="DIR", help="a pipeline or a run")
    parser.add_argument("--out", type=Path, metavar="DIR", help="(default: DIR/report)")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="where a run's corpus is now")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from micronet_lm.report.pipeline_report import is_pipeline, pipeline_document
    from micronet_lm.report.run_report import run_document
    from micronet_lm.report.written import HTML, MARKDOWN, write_report

    target = arguments.target
    if is_pipeline(target):
        document = pipeline_document(target)
    elif is_run(target):
        document = run_document(target, arguments.corpus)
    else:
        raise RunError(
            f"{target} is neither a pipeline nor a run; 'micronet run' and 'micronet train' make "
            "such folders"
        )
    out = arguments.out or target / "report"
    write_report(document, out)
    if arguments.json:
        report = {"html": str(out / HTML), "markdown": str(out / MARKDOWN)}
        print_json({**report, "bytes": (out / HTML).stat().st_size})
        return 0
    print_text(f"Written: {out / HTML}, {out / MARKDOWN}")
    return 0
