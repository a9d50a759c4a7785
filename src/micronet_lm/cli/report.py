"""`micronet report`: one page about a pipeline or a run."""

from pathlib import Path

from micronet_lm.cli.output import print_report
from micronet_lm.cli.parsers import Arguments, Verbs, add_corpus, add_folder, add_verb
from micronet_lm.errors import RunError
from micronet_lm.runs import is_run

_EXAMPLE = """examples:
  micronet report runs/demo
  micronet report runs/small --out reports/small

The HTML page is complete in itself and opens without a network; the Markdown has its pictures
beside it. 'micronet run' writes a report at its end.
"""


def add(verbs: Verbs) -> None:
    """Register the verb."""
    parser = add_verb(
        verbs,
        "report",
        _run,
        help="write one page about a pipeline or a run",
        description=(
            "Write one self-contained HTML page about the folder of a pipeline or of a run, and "
            "the same as Markdown: summary, pipeline, text, a trigram baseline, curves, "
            "sensitivity, accounting, samples, speed, environment and the commands to repeat it. "
            "A pipeline that is not finished is reported as far as it has come."
        ),
        epilog=_EXAMPLE,
    )
    parser.add_argument("target", type=Path, metavar="DIR", help="a pipeline or a run")
    add_folder(parser, "--out", "folder to write (default: DIR/report)")
    add_corpus(parser)


def _run(arguments: Arguments) -> int:
    from micronet_lm.report.pipeline_folder import is_pipeline
    from micronet_lm.report.pipeline_report import pipeline_document
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
    report = {
        "html": str(out / HTML),
        "markdown": str(out / MARKDOWN),
        "bytes": (out / HTML).stat().st_size,
    }
    shown = [f"Written: {out / HTML}, {out / MARKDOWN}"]
    return print_report(report, shown, as_json=arguments.json)
