"""The folders of stages and their states: not begun, interrupted, complete, changed.

A stage's record is written before its work and again after it, beside its folder and not in it. A
folder without a record is not the pipeline's and is never touched.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from micronet_lm.config import flat_keys
from micronet_lm.errors import PipelineError
from micronet_lm.files import locked, make_folder, read_json, refusing_damage, write_text
from micronet_lm.pipeline.outputs import check_outputs, have_vanished
from micronet_lm.pipeline.stage import Product, Stage
from micronet_lm.runs import is_run
from micronet_lm.runs.files import STAGES

RECORDS = STAGES
"""Folder of the records."""


class State(StrEnum):
    """The state of a stage."""

    MISSING = "to do"
    """Nothing is there yet."""
    INTERRUPTED = "begun"
    """It was begun and not finished; it will be resumed."""
    COMPLETE = "complete"
    """It is complete, and its inputs are unchanged."""
    GONE = "gone"
    """It was complete, but its folder was removed; it is made again only if something needs it."""
    CHANGED = "changed"
    """It was made of other inputs or settings; its folder is moved aside."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The record of a stage."""

    stage: str
    fingerprint: str
    complete: bool
    settings: Mapping[str, Any]
    needs: Mapping[str, str]
    """Fingerprints of its inputs, by role."""
    result: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    """Time of all calls; of one that was killed, up to the last file that it wrote."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Checksums of its files; none in records of version 0.1."""


def read_record(file: Path) -> Record | None:
    """Read the record of a stage; None if there is none."""
    return _record(file, f"remove it together with {file.parent.parent / file.stem}")


def read_given(file: Path) -> Record | None:
    """Read the record of a stage that was completed elsewhere; None if there is none."""
    return _record(file, "remove it to train again")


def _record(file: Path, remedy: str) -> Record | None:
    with suppress(FileNotFoundError), refusing_damage(file, PipelineError, remedy):
        record = Record(**read_json(file))
        for name in ("settings", "needs", "result", "outputs"):
            if not isinstance(getattr(record, name), dict):
                raise ValueError(f"its {name} are not a JSON object")
        return record
    return None


class Workspace:
    """A folder of stages.

    A pipeline's own workspace has one folder per kind of stage, and a stage that changes replaces
    the one before. A `shared` workspace has one per fingerprint, so that recipes can share stages.
    """

    def __init__(self, root: Path, *, shared: bool = False) -> None:
        self.root, self._shared = root, shared

    def folder(self, stage: Stage) -> Path:
        """Return the folder of a stage's product."""
        return self.root / self._name(stage)

    def product(self, stage: Stage) -> Product:
        """Return the product of a complete stage."""
        record = self.record(stage)
        return Product(path=self.folder(stage), result=record.result if record else {})

    def record(self, stage: Stage) -> Record | None:
        """Read the record of a stage's folder, whatever it was made of."""
        return read_record(self._file(stage))

    def check_product(self, stage: Stage) -> None:
        """Refuse the product of a complete stage that is not as the stage wrote it."""
        if record := self.record(stage):
            check_outputs(self.folder(stage), record.outputs, stage.name)

    def results(self, stages: Mapping[str, Stage]) -> dict[str, dict[str, Any]]:
        """Return what became of those stages that were begun as they are now, by name."""
        found = {}
        for name, stage in stages.items():
            record = self.record(stage)
            if record and record.fingerprint == stage.fingerprint:
                found[name] = {
                    "complete": record.complete,
                    "path": str(self.folder(stage)),
                    "seconds": record.seconds,
                    **record.result,
                }
        return found

    def free_bytes(self) -> int:
        """Return what is free on the disk of this folder, which need not exist yet."""
        place = next(p for p in (self.root, *self.root.absolute().parents) if p.exists())
        return shutil.disk_usage(place).free

    def state(self, stage: Stage) -> State:
        """Return the state of a stage."""
        record = self.record(stage)
        if record is None:
            return State.MISSING
        if record.fingerprint != stage.fingerprint:
            return State.CHANGED
        if not record.complete:
            return State.INTERRUPTED
        gone = have_vanished(self.folder(stage), record.outputs)
        return State.GONE if gone else State.COMPLETE

    def changes(self, stage: Stage) -> list[str]:
        """Return the names of a changed stage's settings and inputs that differ."""
        record = self.record(stage)
        if record is None or record.fingerprint == stage.fingerprint:
            return []
        before, after = flat_keys(record.settings), flat_keys(stage.settings)
        keys = [k for k in {**before, **after} if before.get(k) != after.get(k)]
        inputs = [s.name for r, s in stage.needs.items() if record.needs.get(r) != s.fingerprint]
        return [*keys, *dict.fromkeys(inputs)] or ["the program's version"]

    def begin(self, stage: Stage) -> Record:
        """Prepare a stage's folder and record that it has begun."""
        state, folder, record = self.state(stage), self.folder(stage), self.record(stage)
        spent = record.seconds + self._unrecorded(stage) if record and not record.complete else 0.0
        if state is State.CHANGED:
            self._move_aside(stage)
            record, spent = None, 0.0
        elif record is None and folder.exists():
            raise PipelineError(
                f"{folder} exists and is not a stage of this pipeline: move it away or choose "
                "another --out (take over a trained run with --take)"
            )
        elif stage.fresh:
            self._clear(folder)
        begun = Record(
            stage=stage.name,
            fingerprint=stage.fingerprint,
            complete=False,
            settings=dict(stage.settings),
            needs={role: needed.fingerprint for role, needed in stage.needs.items()},
            seconds=spent,
        )
        self.write(stage, begun)
        return begun

    def write(self, stage: Stage, record: Record) -> None:
        """Write the record of a stage."""
        write_text(self._file(stage), json.dumps(asdict(record), indent=1) + "\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock this folder against other pipelines; the lock is released when its process ends."""
        if is_run(self.root):
            raise PipelineError(
                f"{self.root} holds a training run, not a pipeline; choose another --out, such as "
                f"{self.root}-pipeline (a trained run is taken over with --take)"
            )
        try:
            with locked(self.root):
                yield
        except BlockingIOError:
            raise PipelineError(
                f"another pipeline runs in {self.root}: wait for it or choose another --out"
            ) from None

    @contextmanager
    def occupied(self, stage: Stage) -> Iterator[None]:
        """Lock one stage against other processes."""
        for folder in (self.root, self.root / RECORDS):
            make_folder(folder)
        try:
            with locked(self.root / RECORDS / f".{self._name(stage)}"):
                yield
        except BlockingIOError:
            raise PipelineError(
                f"another process works on {self.folder(stage)}: wait for it"
            ) from None

    def adopt(self, stage: Stage, folder: Path) -> bool:
        """Take over the record of a stage that was completed elsewhere, without its folder.

        Its state is then `GONE`: its numbers are known, and it runs only if another stage needs it.
        """
        file = folder / self._file(stage).name
        if self.record(stage) is not None:
            return False
        record = read_given(file)
        if record is None or record.fingerprint != stage.fingerprint or not record.complete:
            return False
        for place in (self.root, self.root / RECORDS):
            make_folder(place)
        self.write(stage, record)
        return True

    def give(self, stage: Stage, folder: Path) -> bool:
        """Copy the record of a complete stage into a folder of records."""
        record = self.record(stage)
        if self.state(stage) not in (State.COMPLETE, State.GONE) or record is None:
            return False
        make_folder(folder)
        write_text(folder / self._file(stage).name, json.dumps(asdict(record), indent=1) + "\n")
        return True

    def _name(self, stage: Stage) -> str:
        return f"{stage.folder}-{stage.fingerprint[:12]}" if self._shared else stage.folder

    def _file(self, stage: Stage) -> Path:
        return self.root / RECORDS / f"{self._name(stage)}.json"

    def _unrecorded(self, stage: Stage) -> float:
        """Return the seconds of a call that was killed and so could not record them.

        The record was written when the call began, or when it ended normally: files that are newer
        were written by one that was killed.
        """
        files = [path.stat().st_mtime for path in self.folder(stage).rglob("*") if path.is_file()]
        return max(0.0, max(files, default=0.0) - self._file(stage).stat().st_mtime)

    def _move_aside(self, stage: Stage) -> None:
        """Rename an outdated folder at the same depth, so that its relative paths stay valid."""
        folder, record = self.folder(stage), self.record(stage)
        assert record is not None  # noqa: S101
        if folder.is_symlink() or folder.exists():
            name = f"{folder.name}.old-{record.fingerprint[:8]}"
            places = [folder.with_name(name), *(folder.with_name(f"{name}-{n}") for n in range(99))]
            folder.rename(next(place for place in places if not place.exists()))

    def _clear(self, folder: Path) -> None:
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
