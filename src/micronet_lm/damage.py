"""Find damage in what this package wrote, by its checksums, for `micronet verify`.

Packed files, runs and corpora are checked without torch; soft labels and pipelines need it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from micronet_lm.corpus.manifest import MANIFEST
from micronet_lm.errors import MicronetError, UsageError
from micronet_lm.files import read_json
from micronet_lm.runs import is_run, open_checkpoint, run_input, run_recipe
from micronet_lm.runs.files import BEST, CORPUS, LAST, RECIPE, STAGES
from micronet_lm.runs.seal import seal_holds

if TYPE_CHECKING:
    from micronet_lm.pipeline import Record


class Finding(NamedTuple):
    """The result of checking one file or folder."""

    path: str
    kind: str
    whole: bool
    told: str


def findings(path: Path) -> Iterator[Finding]:
    """Yield one finding for each thing at a path; refuse what this package did not write."""
    if path.is_file():
        if path.name == RECIPE:
            yield _checked(path, "recipe", _recipe)
        else:
            yield _checked(path, *_of_file(path))
    elif (path / STAGES).is_dir():
        yield from _pipeline(path)
    elif is_run(path):
        yield from _run_folder(path)
    elif (known := _manifest_kind(path)) is not None:
        yield _checked(path, *known)
    elif not path.exists():
        raise UsageError(f"there is nothing at {path}: give a file or folder that micronet wrote")
    else:
        raise UsageError(
            f"{path} is not a packed file, a checkpoint, a run, a corpus, soft labels or a "
            "pipeline: give something that micronet wrote"
        )


def _checked(path: Path, kind: str, check: Callable[[Path], str]) -> Finding:
    try:
        return Finding(str(path), kind, True, check(path))
    except (MicronetError, OSError) as error:
        told = str(error) if str(path) in str(error) else f"{path}: {error}"
        return Finding(str(path), kind, False, told)


def _of_file(path: Path) -> tuple[str, Callable[[Path], str]]:
    # Only checkpoints name their format outside of the metadata that packed files have.
    with path.open("rb") as file:
        start = file.read(1 << 16)
    if b"micronet-checkpoint-" in start:
        return "checkpoint", _checkpoint
    return "packed file", _packed


def _packed(path: Path) -> str:
    from micronet_lm.artifact import open_packed

    return _whole(checked=open_packed(path).container.checked)


def _checkpoint(path: Path) -> str:
    with open_checkpoint(path) as reader:
        _ = reader.progress
        for name in reader.names:
            reader.tensor(name)
        return _whole(checked=reader.checked)


def _recipe(path: Path) -> str:
    run_recipe(path.parent)
    return _whole(checked=seal_holds(path.read_text(encoding="utf-8")) is not None)


def _reference(path: Path) -> str:
    return f"at {run_input(path, CORPUS)[0]}"


def _run_folder(path: Path) -> Iterator[Finding]:
    yield _checked(path / RECIPE, "recipe", _recipe)
    for name in (BEST, LAST):
        file = path / name
        if file.is_file():
            yield _checked(file, "checkpoint", _checkpoint)
    yield _checked(path, "reference to its corpus", _reference)


def _manifest_kind(path: Path) -> tuple[str, Callable[[Path], str]] | None:
    try:
        form = read_json(path / MANIFEST)["format"]
    except (OSError, ValueError, KeyError, TypeError):
        form = None
    known: dict[Any, tuple[str, Callable[[Path], str]]] = {
        "micronet-corpus": ("corpus", _corpus),
        "micronet-soft-labels": ("soft labels", _labels),
    }
    if form is None and (path / "vocabulary.tsv").is_file():
        return known["micronet-corpus"]
    return known.get(form)


def _corpus(path: Path) -> str:
    from micronet_lm.corpus import Corpus
    from micronet_lm.corpus.splits import SPLITS

    corpus = Corpus.open(path)
    for split in SPLITS:
        corpus.split(split)
    return _whole(checked=True)


def _labels(path: Path) -> str:
    from micronet_lm.compression import SoftLabels

    SoftLabels.open(path).check_hashes()
    return _whole(checked=True)


def _pipeline(path: Path) -> Iterator[Finding]:
    from micronet_lm.pipeline.workspace import read_record

    for file in sorted((path / STAGES).glob("*.json")):
        folder = path / file.stem
        yield _checked(file, "record of a stage", _record)
        try:
            record = read_record(file)
        except MicronetError:
            continue
        if not folder.is_dir() or record is None or not record.complete:
            continue
        yield _checked(folder, f"outputs of {record.stage}", partial(_outputs, record))
        packed = folder / "model.safetensors"
        if packed.is_file():
            yield _checked(packed, "packed file", _packed)
        elif is_run(folder) or _manifest_kind(folder):
            yield from findings(folder)


def _record(path: Path) -> str:
    from micronet_lm.pipeline.workspace import read_record

    record = read_record(path)
    return "complete" if record is not None and record.complete else "begun, not complete"


def _outputs(record: "Record", folder: Path) -> str:
    from micronet_lm.pipeline.outputs import check_outputs

    count = check_outputs(folder, record.outputs, record.stage)
    return f"{count} files as the stage wrote them" if count else _whole(checked=False)


def _whole(*, checked: bool) -> str:
    return "whole" if checked else "whole in its form; it has no checksum (version 0.1)"
