"""A run's metrics: JSON lines and TensorBoard events."""

import io
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from micronet_lm.errors import RunError
from micronet_lm.files import open_own, read_json_lines, refusing_damage, write_text
from micronet_lm.runs.files import METRICS, TENSORBOARD


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read all complete lines of a metrics file; a killed run may leave half a line."""
    remedy = "move it away to resume without it"
    with suppress(FileNotFoundError), refusing_damage(path, RunError, remedy):
        metrics: list[dict[str, Any]] = read_json_lines(path)
        for number, line in enumerate(metrics, 1):
            if not isinstance(line["kind"], str) or type(line["step"]) is not int:
                raise ValueError(f"line {number} has another kind or step than a run writes")
        return metrics
    return []


class Metrics:
    """Writer of a run's metrics."""

    def __init__(self, folder: Path, *, step: int, silent: bool = False) -> None:
        """Continue after `step` finished steps; lines of later steps are removed.

        A `silent` one writes nothing, for all processes but the leader.
        """
        self._silent = silent
        if silent:
            return
        path = folder / METRICS
        self._kept = kept = [line for line in read_metrics(path) if line["step"] <= step]
        write_text(path, "".join(json.dumps(line) + "\n" for line in kept))
        self._file = io.TextIOWrapper(open_own(path, os.O_WRONLY | os.O_APPEND), encoding="utf-8")
        # Imported here because it takes a second that only training needs.
        from torch.utils.tensorboard.writer import SummaryWriter

        self._board = SummaryWriter(folder / TENSORBOARD, purge_step=step + 1)

    def note(self, kind: str, step: int, facts: dict[str, Any]) -> None:
        """Add one line of facts, unless it equals the last one of its kind."""
        if self._silent:
            return
        before = [line for line in self._kept if line["kind"] == kind]
        last = before[-1] if before else {}
        if {**last, "step": step} != {"kind": kind, "step": step, **facts}:
            self._line(kind, step, facts)

    def write(self, kind: str, step: int, values: dict[str, Any]) -> None:
        """Add one line, and its numbers as scalars named `kind/key`."""
        if self._silent:
            return
        self._line(kind, step, values)
        for key, value in values.items():
            if isinstance(value, int | float):
                self._board.add_scalar(f"{kind}/{key}", value, step)

    def _line(self, kind: str, step: int, values: dict[str, Any]) -> None:
        self._file.write(json.dumps({"kind": kind, "step": step, **values}, allow_nan=False) + "\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._silent:
            self._file.close()
            self._board.close()
