"""Write a report: one HTML page, and the same as Markdown with its pictures."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from micronet_lm.files import write_text
from micronet_lm.pipeline import Product, Stage
from micronet_lm.report.document import Document, to_html, to_markdown

HTML, MARKDOWN = "report.html", "report.md"


def write_report(document: Document, folder: Path) -> None:
    """Write both forms into a folder."""
    write_text(folder / MARKDOWN, to_markdown(document))
    for picture in document.pictures:
        write_text(folder / "figures" / f"{picture.name}.svg", picture.svg)
    write_text(folder / HTML, to_html(document))


def report_stage(stages: Mapping[str, Stage], setup: Mapping[str, Any]) -> Stage:
    """Return the last stage of a pipeline; `setup` is what the pipeline was started with."""
    return Stage(
        name="report",
        folder="report",
        settings=dict(setup),
        needs=dict(stages),
        work=partial(_report, setup=dict(setup)),
        fresh=True,
    )


def _report(here: Path, inputs: Mapping[str, Product], *, setup: dict[str, Any]) -> dict[str, Any]:
    from micronet_lm.report.pipeline_folder import SETUP
    from micronet_lm.report.pipeline_report import pipeline_document

    root = here.parent
    write_text(root / SETUP, json.dumps(setup, indent=1) + "\n")
    write_report(pipeline_document(root), here)
    return {"bytes": (here / HTML).stat().st_size}
