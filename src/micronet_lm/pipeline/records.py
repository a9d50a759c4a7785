"""Records of stages that were completed elsewhere: small files instead of their runs."""

from collections.abc import Sequence
from pathlib import Path

from micronet_lm.pipeline.runner import perform, prepare
from micronet_lm.pipeline.stage import Stage, in_order
from micronet_lm.pipeline.workspace import State, Workspace, read_given


def adopt_records(
    workspace: Workspace, targets: Sequence[Stage], folder: Path, *, build: bool
) -> int | None:
    """Take over the records of a folder for what is not here; return how many.

    With `build` the corpus is made first and compared with that of the records: records of another
    text are left alone, and None is returned. A corpus itself is never taken over.
    """
    stages = in_order(targets)
    corpora = [stage for stage in stages if stage.name == "corpus"]
    for corpus in corpora:
        if build and workspace.state(corpus) is not State.COMPLETE:
            prepare([corpus])
            perform(workspace, corpus)
        own, theirs = workspace.record(corpus), _text_of(folder, corpus)
        if own and own.complete and theirs and own.result.get("fingerprint") != theirs:
            return None
    return sum(workspace.adopt(stage, folder) for stage in stages if stage not in corpora)


def told_of_records(adopted: int | None, folder: Path) -> str:
    """Say what became of the records of a folder."""
    if adopted is None:
        return f"The records in {folder} are of another text: all rows are trained on this one."
    return f"{adopted} results are taken from the records in {folder}."


def _text_of(folder: Path, corpus: Stage) -> str | None:
    """Return the fingerprint of the text that a folder's records were made with, if known."""
    for file in folder.glob("corpus-*.json"):
        record = read_given(file)
        if record is not None and record.fingerprint == corpus.fingerprint:
            found: str | None = record.result.get("fingerprint")
            return found
    return None
