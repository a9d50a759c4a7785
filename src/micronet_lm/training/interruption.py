"""Ctrl-C and SIGTERM end a run after the step in hand, not in the middle of it."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from micronet_lm.machine import leads


class Interruption:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.requested = False

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested:  # asked twice: do not make the user wait for the step
            raise KeyboardInterrupt
        self.requested = True
        if leads():
            sys.stderr.write("\nStopping after this step; once more to stop at once, unsaved.\n")


@contextmanager
def deferred_interruption() -> Iterator[Interruption]:
    """Turn the first SIGINT or SIGTERM into a request that the loop reads."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():  # signals are not for us
        yield interruption
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, interruption._request) for number in numbers]
    try:
        yield interruption
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
