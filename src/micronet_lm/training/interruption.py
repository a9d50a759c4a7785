"""Ctrl-C and SIGTERM end a run after the step in hand, not in the middle of it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.requested = False

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested:  # asked twice: do not make the user wait for the step
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def deferred_interruption() -> Iterator[Interruption]:
    """Turn the first SIGINT or SIGTERM into a request that the loop reads."""
    interruption = Interruption()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, interruption._request) for number in numbers]
    try:
        yield interruption
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
