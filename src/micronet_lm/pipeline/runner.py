"""Run the stages: skip, resume or repeat each, and say in one sentence why it stopped."""

import errno
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from micronet_lm.errors import MicronetError, PipelineError
from micronet_lm.pipeline.child import do_in_child
from micronet_lm.pipeline.outputs import output_sums
from micronet_lm.pipeline.stage import Interrupted, Stage, in_order
from micronet_lm.pipeline.workspace import State, Workspace
from micronet_lm.training.precision import prepare_process

Tell = Callable[[str], None]

FULL_DISK = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
"""What the system says when there is no room for a file."""


@dataclass(frozen=True, kw_only=True)
class PlannedStage:
    """A stage, its state, and whether it has to run."""

    stage: Stage
    state: State
    changes: tuple[str, ...]
    """Differences from what its folder was made of, if it has changed."""
    runs: bool
    """Whether it has to run: it is not complete, and a target needs it."""


def plan(workspace: Workspace, targets: Sequence[Stage]) -> list[PlannedStage]:
    """Return what has to run to complete all targets; change nothing."""
    stages = in_order(targets)
    states = {stage.fingerprint: workspace.state(stage) for stage in stages}
    wanted = {stage.fingerprint for stage in targets}
    for stage in reversed(stages):
        if stage.fingerprint in wanted and states[stage.fingerprint] is not State.COMPLETE:
            wanted |= {needed.fingerprint for needed in stage.needs.values()}
    return [
        PlannedStage(
            stage=stage,
            state=states[stage.fingerprint],
            changes=tuple(workspace.changes(stage)),
            runs=stage.fingerprint in wanted and states[stage.fingerprint] is not State.COMPLETE,
        )
        for stage in stages
    ]


def run_stages(
    workspace: Workspace, targets: Sequence[Stage], tell: Tell, *, in_children: bool = False
) -> None:
    """Complete all targets, one stage after the other, with the workspace locked.

    With `in_children` each stage runs in a child process, whose crash becomes an error message;
    only for processes that have not computed with torch (`child.py` says why).
    """
    with writing(workspace), workspace.locked():
        planned = plan(workspace, targets)
        prepare([own.stage for own in planned if own.runs])
        for number, own in enumerate(planned, 1):
            lead = f"[{number}/{len(planned)}] {own.stage.name}"
            if not own.runs:
                tell(f"{lead}: {own.state.value}{_unneeded(own)}")
                continue
            tell(f"{lead}: {_reason(own)}")
            if in_children:
                do_in_child(partial(perform, workspace, own.stage), own.stage)
            else:
                perform(workspace, own.stage)


def prepare(stages: Iterable[Stage]) -> None:
    """Prepare this process for the precision of these stages' training, if any trains."""
    asked = {stage.settings.get("train", {}).get("precision", "float32") for stage in stages}
    if asked - {"float32"}:
        prepare_process()


def perform(workspace: Workspace, stage: Stage) -> None:
    """Do one stage whose inputs are complete."""
    with writing(workspace), workspace.occupied(stage):
        record = workspace.begin(stage)
        inputs = {role: workspace.product(needed) for role, needed in stage.needs.items()}
        for needed in stage.needs.values():
            workspace.check_product(needed)
        begin = time.perf_counter()
        try:
            result = stage.work(workspace.folder(stage), inputs)
        except (Interrupted, KeyboardInterrupt, MicronetError):
            spent = record.seconds + time.perf_counter() - begin
            workspace.write(stage, replace(record, seconds=spent))
            raise
        spent = record.seconds + time.perf_counter() - begin
        sums = output_sums(workspace.folder(stage))
        done = replace(record, complete=True, result=result, seconds=spent, outputs=sums)
        workspace.write(stage, done)


@contextmanager
def writing(workspace: Workspace) -> Iterator[None]:
    """Turn an `OSError` of writing into a message that says what to do."""
    try:
        yield
    except OSError as error:
        place, why = error.filename or workspace.root, error.strerror or str(error)
        if error.errno in FULL_DISK:
            remedy = "free disk space"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            remedy = f"make {workspace.root} writable or choose another --out"
        else:
            remedy = f"check {workspace.root}"
        raise PipelineError(
            f"{place} cannot be written ({why}): {remedy}, then the same command resumes from what "
            "is complete"
        ) from error


def _reason(own: PlannedStage) -> str:
    match own.state:
        case State.INTERRUPTED:
            return "resumes"
        case State.CHANGED:
            return f"again, because of {', '.join(own.changes)}"
        case State.GONE:
            return "again, because its folder was removed and another stage needs it"
        case _:
            return "begins"


def _unneeded(own: PlannedStage) -> str:
    if own.state is State.COMPLETE:
        return ""
    return ", and not needed"
