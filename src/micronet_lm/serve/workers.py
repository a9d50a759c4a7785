"""Worker threads with a bounded queue and a deadline for each request.

The engine releases Python's global lock, so that threads compute side by side while the event loop
keeps answering others.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from micronet_lm.serve.refusals import Busy, TooSlow

T = TypeVar("T")


class Deadline:
    """The time at which work must stop; long work checks it again and again."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self.abandoned = False
        """Whether nobody waits for the answer any more."""

    @property
    def left(self) -> float:
        """Seconds that are left, 0 or more."""
        return max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raise where the time is over or nobody waits."""
        if self.abandoned or not self.left:
            raise TooSlow(
                f"the answer was not ready within {self._seconds:g} seconds: ask for less, or ask "
                "again later"
            )


class Workers:
    """The threads that answer."""

    def __init__(self, threads: int, waiting: int, seconds: float) -> None:
        self.threads, self._waiting, self._seconds = threads, waiting, seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="worker")
        self.in_hand = 0
        """Requests that are computed or wait."""

    @contextmanager
    def admitted(self) -> Iterator[Deadline]:
        """Count a request while it is in hand; refuse it where too many are."""
        if self.in_hand >= self.threads + self._waiting:
            raise Busy(
                f"{self.in_hand} requests are in hand and no more may wait: ask again in a second"
            )
        self.in_hand += 1
        try:
            yield Deadline(self._seconds)
        finally:
            self.in_hand -= 1

    async def run(self, work: Callable[[Deadline], T], *, whole: bool = False) -> T:
        """Do one request's work in a thread until its deadline.

        With `whole`, work that began in time is waited for: it changes what others use after it.
        """
        with self.admitted() as deadline:
            return await self._finish(deadline, work, whole)

    async def _finish(self, deadline: Deadline, work: Callable[[Deadline], T], whole: bool) -> T:
        def begin() -> T:
            deadline.check()  # it may have waited too long
            return work(deadline)

        future = asyncio.get_running_loop().run_in_executor(self._pool, begin)
        if whole:
            return await _to_the_end(future)
        try:
            # Not wait_for, which would cancel the work instead of leaving it to the deadline.
            async with asyncio.timeout(deadline.left + 0.1):
                return await asyncio.shield(future)
        except TimeoutError:
            deadline.abandoned = True
            future.add_done_callback(_forget)
            deadline.check()
            raise
        except asyncio.CancelledError:
            deadline.abandoned = True
            future.add_done_callback(_forget)
            raise

    async def do(self, work: Callable[[], T]) -> T:
        """Do the server's own work, which is not counted, such as saving a session."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Wait for what is computed and end the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)


async def _to_the_end(future: "asyncio.Future[T]") -> T:
    """Wait for work even if the waiting is cancelled: the next request must find it complete."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            if future.cancelled():  # by the pool that closes: it never began
                raise
            cancelled = error
        except Exception:  # the work's own: raised below
            break
    if cancelled is not None:
        _forget(future)
        raise cancelled
    return future.result()


def _forget(future: "asyncio.Future[Any]") -> None:
    """Read the error of work that was given up, or asyncio would report it as lost."""
    if not future.cancelled():
        future.exception()
