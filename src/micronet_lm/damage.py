"""Find damage in what this package wrote, by its checksums, for `micronet verify`.

Packed files, runs and corpora are checked without torch; soft labels and pipelines need it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from micronet_lm.config.strict_yaml import LARGEST_TEXT
from micronet_lm.errors import MicronetError, UsageError
from micronet_lm.files import (
    open_regular,
    read_json,
    read_json_lines,
    read_small,
    refusing_damage,
)
from micronet_lm.runs import is_run, open_checkpoint, run_input, run_recipe
from micronet_lm.runs.files import BEST, CORPUS, COUNTERS, LAST, RECIPE, STAGES
from micronet_lm.runs.seal import seal_holds

_RESULTS = ("sweep.json", "sensitivity.json", "points.jsonl")
"""Files of which a folder has one that a sweep or an analysis wrote."""


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
            yield _checked(path, "recipe", partial(_recipe, path))
        else:
            kind, check = _of_file(path)
            yield _checked(path, kind, check)
    elif (path / STAGES).is_dir():
        yield from _pipeline(path)
    elif is_run(path):
        yield from _run_folder(path)
    elif (known := _manifest_kind(path)) is not None:
        yield _checked(path, known[0], partial(known[1], path))
    elif any((path / name).exists() for name in _RESULTS):
        yield _checked(path, "results", partial(_records, path))
        for folder in sorted(path.iterdir()):
            if is_run(folder):
                yield from _run_folder(folder)
    elif sessions := sorted(path.glob("*.session")):
        for file in sessions:
            yield _checked(file, "session", partial(_session, file))
    elif not path.exists():
        raise UsageError(f"there is nothing at {path}: give a file or folder that micronet wrote")
    else:
        raise UsageError(
            f"{path} is not a packed file, a checkpoint, a run, a corpus, soft labels, a pipeline, "
            "a sweep, a personal memory or a session: give something that micronet wrote"
        )


def _checked(path: Path, kind: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(str(path), kind, True, check())
    except (MicronetError, OSError) as error:
        told = str(error) if str(path) in str(error) else f"{path}: {error}"
        return Finding(str(path), kind, False, told)


def _of_file(path: Path) -> tuple[str, Callable[[], str]]:
    from micronet_lm.runtime.personal_file import MAGIC
    from micronet_lm.serve.session_files import MARK

    with open_regular(path) as file:
        start = file.read(1 << 16)
    if start.startswith(MAGIC):
        return "personal memory", partial(_personal, path)
    if start.startswith(MARK):
        return "session", partial(_session, path)
    if path.suffix in (".json", ".jsonl"):
        return "record", partial(_json, path)
    # In the metadata of a packed file, such as a name on its card, quotation marks are escaped.
    if b':"micronet-checkpoint-' in start:
        return "checkpoint", partial(_checkpoint, path)
    return "packed file", partial(_packed, path)


def _personal(path: Path) -> str:
    from micronet_lm.runtime.personal_file import whole_body

    with open_regular(path) as file:
        whole_body(file.read())
    return _whole(checked=True)


def _session(path: Path) -> str:
    from micronet_lm.serve.session_files import parsed

    with open_regular(path) as file:
        return _whole(checked=parsed(file.read())[2])


def _json(path: Path) -> str:
    with refusing_damage(path, MicronetError, "restore it, or make it again"):
        (read_json_lines if path.suffix == ".jsonl" else read_json)(path)
    return "whole in its form; it has no checksum"


def _records(path: Path) -> str:
    files = [file for file in sorted(path.iterdir()) if file.suffix in (".json", ".jsonl")]
    for file in files:
        _json(file)
    return f"{len(files)} JSON files, whole in their form; they have no checksums"


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
    return _whole(checked=seal_holds(read_small(path, LARGEST_TEXT).decode("utf-8")) is not None)


def _run_folder(path: Path) -> Iterator[Finding]:
    yield _checked(path / RECIPE, "recipe", partial(_recipe, path / RECIPE))
    for name in (BEST, LAST, COUNTERS):
        file = path / name
        if file.is_file():
            yield _checked(file, "checkpoint", partial(_checkpoint, file))
    yield _checked(path, "records", partial(_records, path))
    yield _checked(path, "reference to its corpus", lambda: f"at {run_input(path, CORPUS)[0]}")


def _manifest_kind(path: Path) -> tuple[str, Callable[[Path], str]] | None:
    try:
        form = read_json(path / "manifest.json")["format"]
    except (OSError, ValueError, KeyError, TypeError):
        form = None
    known: dict[Any, tuple[str, Callable[[Path], str]]] = {
        "micronet-corpus": ("corpus", _corpus),
        "micronet-soft-labels": ("soft labels", _labels),
    }
    if form not in known and (path / "vocabulary.tsv").exists():
        form = "micronet-corpus"
    if form not in known and any(path.glob("*.ids.npy")):
        form = "micronet-soft-labels"
    return known.get(form)


def _corpus(path: Path) -> str:
    from micronet_lm.corpus import Corpus
    from micronet_lm.corpus.splits import SPLITS

    corpus = Corpus.open(path)
    for split in SPLITS:
        corpus.split(split)
    corpus.check_dropped()
    return _whole(checked=True)


def _labels(path: Path) -> str:
    from micronet_lm.compression import SoftLabels

    SoftLabels.open(path).check_hashes()
    return _whole(checked=True)


def _pipeline(path: Path) -> Iterator[Finding]:
    from micronet_lm.pipeline.outputs import check_outputs
    from micronet_lm.pipeline.workspace import read_record

    for file in sorted((path / STAGES).glob("*.json")):
        folder = path / file.stem
        yield _checked(file, "record of a stage", partial(_record_of, file))
        try:
            record = read_record(file)
        except MicronetError:
            continue
        if not folder.is_dir() or record is None or not record.complete:
            continue

        def outputs(folder: Path = folder, record: Any = record) -> str:
            count = check_outputs(folder, record.outputs, record.stage)
            return f"{count} files as the stage wrote them" if count else _whole(checked=False)

        yield _checked(folder, f"outputs of {record.stage}", outputs)
        packed = folder / "model.safetensors"
        if packed.is_file():
            yield _checked(packed, "packed file", partial(_packed, packed))
        elif is_run(folder) or _manifest_kind(folder):
            yield from findings(folder)


def _record_of(file: Path) -> str:
    from micronet_lm.pipeline.workspace import read_record

    record = read_record(file)
    return "complete" if record and record.complete else "begun, not complete"


def _whole(*, checked: bool) -> str:
    return "whole" if checked else "whole in its form; it has no checksum (version 0.1)"
