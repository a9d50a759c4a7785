"""What a run reports: JSON lines for programs, TensorBoard for curves, one line for people."""

import json
import math
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from micronet_lm.files import write_text

FILE = "metrics.jsonl"
"""Name of the metrics file in a run's folder."""


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read all complete lines of a metrics file; a killed run may have left half a line."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]


class Metrics:
    """Writes a run's numbers as they come."""

    def __init__(self, folder: Path, *, step: int, silent: bool = False) -> None:
        """Go on after `step` finished steps: what is reported of later ones never happened.

        A `silent` one writes nothing: all processes but the leader have such.
        """
        self._silent = silent
        if silent:
            return
        path = folder / FILE
        kept = [line for line in read_metrics(path) if line["step"] <= step]
        write_text(path, "".join(json.dumps(line) + "\n" for line in kept))
        self._file = path.open("a", encoding="utf-8")
        # Imported here because it takes a second that only training should pay.
        from torch.utils.tensorboard.writer import SummaryWriter

        self._board = SummaryWriter(folder / "tensorboard", purge_step=step + 1)

    def write(self, kind: str, step: int, values: dict[str, Any]) -> None:
        """Add one line, and its numbers as scalars named `kind/key`."""
        if self._silent:
            return
        self._file.write(json.dumps({"kind": kind, "step": step, **values}) + "\n")
        self._file.flush()
        for key, value in values.items():
            if isinstance(value, int | float) and math.isfinite(value):
                self._board.add_scalar(f"{kind}/{key}", value, step)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._silent:
            self._file.close()
            self._board.close()


class ProgressLine:
    """One line on standard error: rewritten on a terminal, added now and then elsewhere."""

    def __init__(self, total: int, *, quiet: bool = False, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        self._pause = 0.2 if self._live else 30.0
        self._total, self._quiet = total, quiet
        self._shown = -math.inf
        self._begin: tuple[float, int] | None = None

    def show(self, step: int, *, loss: float, tokens_per_second: float, note: str = "") -> None:
        """Report after `step` finished steps."""
        now = time.monotonic()
        if self._begin is None:
            self._begin = (now, step)
        if self._quiet or (now - self._shown < self._pause and step < self._total):
            return
        self._shown = now
        since, first = self._begin
        pace = (now - since) / (step - first) if step > first else 0.0
        left = _clock(pace * (self._total - step)) if pace else "?"
        text = (
            f"step {step:,}/{self._total:,}  loss {loss:.4f}  perplexity {_short(loss)}  "
            f"{tokens_per_second:,.0f} tokens/s  {left} left{'  ' + note if note else ''}"
        )
        self._out.write(f"\r\x1b[2K{text}" if self._live else text + "\n")
        self._out.flush()

    def say(self, text: str) -> None:
        """Write a line that stays."""
        if not self._quiet:
            self._out.write(f"\r\x1b[2K{text}\n" if self._live else text + "\n")
            self._out.flush()

    def end(self) -> None:
        """Leave the last line standing."""
        if self._live and not self._quiet:
            self._out.write("\n")
            self._out.flush()


def _short(loss: float) -> str:
    return f"{math.exp(loss):,.1f}" if loss < 20 else "huge"


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
