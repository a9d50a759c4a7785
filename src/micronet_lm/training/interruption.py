"""Signals to a training: Ctrl-C and SIGTERM save and end it, SIGUSR1 and SIGUSR2 only save."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from micronet_lm.machine import leads

STOPPING, SAVING = (signal.SIGINT, signal.SIGTERM), (signal.SIGUSR1, signal.SIGUSR2)

AS_ONE = 5.0
"""Seconds within which repeated signals count as one: a cluster and torchrun both send them."""


class Interruption:
    """Requests to stop or to save, which the loop reads after each step."""

    def __init__(self) -> None:
        self.requested = False
        """Whether to save and stop after this step."""
        self.save_requested = False
        """Whether to save after this step and continue."""
        self._first = 0.0

    def _stop(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.requested:
            # Only a person's second Ctrl-C stops at once; what must end sooner sends SIGKILL.
            if number == signal.SIGINT and now - self._first > AS_ONE:
                raise KeyboardInterrupt
            return
        self.requested, self._first = True, now
        if leads():
            sys.stderr.write(
                "\nStopping after this step; Ctrl-C again after "
                f"{AS_ONE:g} seconds stops at once without saving.\n"
            )

    def _save(self, number: int, frame: FrameType | None) -> None:
        self.save_requested = True


@contextmanager
def deferred_interruption() -> Iterator[Interruption]:
    """Turn signals into requests that the loop reads."""
    interruption = Interruption()
    if (
        threading.current_thread() is not threading.main_thread()
    ):  # only the main thread gets signals
        yield interruption
        return
    handlers = {
        **dict.fromkeys(STOPPING, interruption._stop),
        **dict.fromkeys(SAVING, interruption._save),
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
