"""Ctrl-C and SIGTERM end a run after the current step."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from micronet_lm.machine import leads


class Interruption:
    """Request to stop."""

    def __init__(self) -> None:
        self.requested = False

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested:  # the second request stops at once
            raise KeyboardInterrupt
        self.requested = True
        if leads():
            sys.stderr.write(
                "\nStopping after this step; press again to stop at once without saving.\n"
            )


@contextmanager
def deferred_interruption() -> Iterator[Interruption]:
    """Turn the first SIGINT or SIGTERM into a request that the loop reads."""
    interruption = Interruption()
    if (
        threading.current_thread() is not threading.main_thread()
    ):  # only the main thread gets signals
        yield interruption
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, interruption._request) for number in numbers]
    try:
        yield interruption
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
