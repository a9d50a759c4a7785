"""`micronet verify`: compare what this program wrote with its checksums."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from micronet_lm.cli.output import harmless, make_table, print_report
from micronet_lm.cli.parsers import Arguments, Verbs, add_verb
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
from micronet_lm.runtime.places import packed_file

_EXAMPLE = """examples:
  micronet verify model.safetensors
  micronet verify runs/demo --json

The exit code is 1 if something is damaged. What version 0.1 wrote has no checksums, nor have the
JSON files of a run or an analysis: their form is checked, and the answer says so.
"""

_RESULTS = ("sweep.json", "sensitivity.json", "points.jsonl")
"""Files of which a folder has one that a sweep or an analysis wrote."""


class Finding(NamedTuple):
    """What was found out about one file or folder."""

    path: str
    kind: str
    whole: bool
    told: str


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
    findings = list(
        _find(packed_file(arguments.path) if not arguments.path.exists() else arguments.path)
    )
    report = {
        "path": str(arguments.path),
        "whole": all(finding.whole for finding in findings),
        "found": [finding._asdict() for finding in findings],
    }
    print_report(report, _shown(findings), as_json=arguments.json)
    if damaged := [finding for finding in findings if not finding.whole]:
        more = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
        raise MicronetError(damaged[0].told + more)
    return 0


def _shown(findings: list[Finding]) -> Iterator[RenderableType]:
    table = make_table("what", "where", "result")
    for finding in findings:
        result = finding.told if finding.whole else "damaged"
        table.add_row(finding.kind, harmless(finding.path), Text(result))
    yield table


def _find(path: Path) -> Iterator[Finding]:
    """Yield a finding for each thing at a path."""
    if path.is_file():
        if path.name == RECIPE:
            yield _checked(path, "recipe", lambda: _recipe(path))
        else:
            kind, check = _of_file(path)
            yield _checked(path, kind, check)
    elif (path / STAGES).is_dir():
        yield from _pipeline(path)
    elif is_run(path):
        yield from _run_folder(path)
    elif (known := _manifest_kind(path)) is not None:
        yield _checked(path, known[0], lambda: known[1](path))
    elif any((path / name).exists() for name in _RESULTS):
        yield _checked(path, "results", lambda: _records(path))
        for folder in sorted(path.iterdir()):
            if is_run(folder):
                yield from _run_folder(folder)
    elif sessions := sorted(path.glob("*.session")):
        for file in sessions:
            yield _checked(file, "session", lambda file=file: _session(file))  # type: ignore[misc]
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
        return "personal memory", lambda: _personal(path)
    if start.startswith(MARK):
        return "session", lambda: _session(path)
    if path.suffix in (".json", ".jsonl"):
        return "record", lambda: _json(path)
    # In the metadata of a packed file, such as a name on its card, quotation marks are escaped.
    if b':"micronet-checkpoint-' in start:
        return "checkpoint", lambda: _checkpoint(path)
    return "packed file", lambda: _packed(path)


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
    yield _checked(path / RECIPE, "recipe", lambda: _recipe(path / RECIPE))
    for name in (BEST, LAST, COUNTERS):
        file = path / name
        if file.is_file():
            yield _checked(file, "checkpoint", lambda file=file: _checkpoint(file))  # type: ignore[misc]
    yield _checked(path, "records", lambda: _records(path))
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
        yield _checked(file, "record of a stage", lambda file=file: _record(read_record(file)))  # type: ignore[misc]
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
            yield _checked(packed, "packed file", lambda packed=packed: _packed(packed))  # type: ignore[misc]
        elif is_run(folder) or _manifest_kind(folder):
            yield from _find(folder)


def _record(record: Any) -> str:
    return "complete" if record.complete else "begun, not complete"


def _whole(*, checked: bool) -> str:
    return "whole" if checked else "whole in its form; it has no checksum (version 0.1)"
