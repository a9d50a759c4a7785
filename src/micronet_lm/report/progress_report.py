"""The report of an incomplete pipeline: complete stages, and curves so far."""

from micronet_lm.corpus import Corpus
from micronet_lm.pipeline.stages import TRAINED
from micronet_lm.report.document import Document, Section, Table, Text
from micronet_lm.report.environment import made_line
from micronet_lm.report.parts import (
    commands_section,
    curves_section,
    environment_section,
    sensitivity_section,
)
from micronet_lm.report.pipeline_folder import PipelineFolder
from micronet_lm.report.quantities import duration, shown
from micronet_lm.report.text_parts import corpus_section

_KEYS = ("validation_perplexity", "test_perplexity")


def progress_document(folder: PipelineFolder) -> Document:
    """Report the complete stages, and the command that resumes the pipeline."""
    commands = folder.commands[:2]
    sections = [
        _progress(folder),
        _corpus(folder),
        curves_section(folder.runs(TRAINED)),
        sensitivity_section(folder.root / "sensitivity"),
        environment_section(),
        commands_section(commands),
    ]
    return Document(
        title=f"{folder.name}: an unfinished pipeline",
        subtitle="Results so far; models are compared once all stages are complete.",
        made=made_line(commands[-1]),
        sections=[section for section in sections if section is not None],
    )


def _progress(folder: PipelineFolder) -> Section:
    rows = []
    for name, record in folder.records.items():
        result = record["result"]
        numbers = [shown(key, result[key]) if key in result else "" for key in _KEYS]
        state = "complete" if record["complete"] else "begun"
        rows.append([name, state, *numbers, duration(folder.seconds(name))])
    return Section(
        title="Stages",
        blocks=[
            Table(head=["stage", "state", "validation", "test", "time"], rows=rows, texts=2),
            Text(
                text="The command that started the pipeline resumes it and skips complete stages."
            ),
        ],
    )


def _corpus(folder: PipelineFolder) -> Section | None:
    record = folder.records.get("corpus", {"complete": False})
    path = folder.root / "corpus"
    return corpus_section(Corpus.open(path)) if record["complete"] and path.is_dir() else None
