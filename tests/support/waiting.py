"""Wait for something with a limit: a test that would wait for ever fails with a sentence."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread

PATIENCE = 90.0
"""Seconds for a process to answer on a machine that is busy with other tests."""


def wait_until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Wait until a condition holds; fail with what was waited for if it never does."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {patience:g} seconds for {what}")
        time.sleep(0.01)


@contextmanager
def working(tasks: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Do tasks in threads beside the body, and wait for them after it.

    The threads are daemons: one that never ends fails the test instead of the whole run. The first
    error of a task is raised here, so that no test waits for what a dead thread was to do.
    """
    errors: list[BaseException] = []

    def guarded(task: Callable[[], object]) -> None:
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=guarded, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "a thread did not end"
    if errors:
        raise errors[0]
