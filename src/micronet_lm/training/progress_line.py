"""The progress line of long work: numbers, the speed and the time left."""

import math
import sys
import time
from typing import Self, TextIO

from micronet_lm.training.evaluation import perplexity


class ProgressLine:
    """One line on standard error: rewritten on a terminal, repeated at intervals elsewhere."""

    def __init__(self, total: int, *, quiet: bool = False, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        self._pause = 0.2 if self._live else 30.0
        self._total, self._quiet = total, quiet
        self._shown = -math.inf
        self._begin: tuple[float, int] | None = None

    def show(self, step: int, *, loss: float, tokens_per_second: float) -> None:
        """Report after `step` finished steps of training."""
        text = f"loss {loss:.4f}  perplexity {perplexity(loss):,.1f}"
        self.report(step, f"{text}  {tokens_per_second:,.0f} tokens/s", what="step")

    def report(self, done: int, text: str, *, what: str) -> None:
        """Report the amount done, with a text."""
        now = time.monotonic()
        if self._begin is None:
            self._begin = (now, done)
        if self._quiet or (now - self._shown < self._pause and done < self._total):
            return
        self._shown = now
        since, first = self._begin
        pace = (now - since) / (done - first) if done > first else 0.0
        left = _clock(pace * (self._total - done)) if pace else "?"
        text = f"{what} {done:,}/{self._total:,}  {text}  {left} left"
        self._out.write(f"\r\x1b[2K{text}" if self._live else text + "\n")
        self._out.flush()

    def say(self, text: str) -> None:
        """Write a permanent line."""
        if not self._quiet:
            self._out.write(f"\r\x1b[2K{text}\n" if self._live else text + "\n")
            self._out.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Keep the last line and begin a new one."""
        if self._live and not self._quiet and self._begin is not None:
            self._out.write("\n")
            self._out.flush()


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
