"""Do work in a child process, so that a signal that ends it becomes an error message.

The child is a fork: it starts at once, and frees its memory when it ends. A fork is safe only from
a process that has not computed with torch yet, whose threads it would lack: the command line and a
cluster's job are such processes, an arbitrary caller may not be.
"""

import ctypes
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from micronet_lm.errors import PipelineError
from micronet_lm.machine import signal_name
from micronet_lm.pipeline.stage import Interrupted, Stage

FORWARDED = (signal.SIGINT, signal.SIGTERM)
"""Signals that ask to stop; the child gets each once, whichever process it was sent to."""

SAVING = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that ask a training to save; other stages ignore them."""

_PARENT_DEATH_SIGNAL = 1
"""Linux: PR_SET_PDEATHSIG of prctl."""


def do_in_child(work: Callable[[], None], stage: Stage) -> None:
    """Do work in a fork of this process; raise here what it raises.

    A child ended by a signal raises a `PipelineError` that names the stage, the signal and what to
    try; one that was asked to stop raises `Interrupted`.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    with _held_signals():
        parent, child = os.getpid(), _fork()
        if child == 0:
            os.close(reader)
            _be_the_child(parent)
        else:
            before = _forward_to(child)
    if child == 0:
        _work(work, writer)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except BaseException:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if said:
        raise pickle.loads(said)  # noqa: S301 (our own child wrote it)
    if status < 0:
        raise _death(stage, -status)
    if status:
        raise PipelineError(
            f"stage {stage.name} ended with exit code {status}: run the command again"
        )


def _death(stage: Stage, number: int) -> Exception:
    """Return the error for a stage ended by a signal, with what to try."""
    if number in FORWARDED:
        return Interrupted(f"in stage {stage.name}")
    if number == signal.SIGKILL:
        remedy = (
            "another process ended it, most often the system when memory is short: close other "
            f"programs, or train in smaller parts with --{stage.keys}train.accumulate 2"
        )
    elif number in (signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGABRT):
        remedy = (
            "this processor may not support an instruction that was used: try "
            f"--{stage.keys}train.precision float32; 'micronet doctor' shows what works here"
        )
    else:
        remedy = "the cause is unknown"
    return PipelineError(
        f"stage {stage.name} was ended by {signal_name(number)}; {remedy}; the same command "
        "resumes from what was saved"
    )


def _work(work: Callable[[], None], writer: int) -> None:
    """Do the work in the child and exit; an exception is sent to the parent."""
    said = b""
    try:
        work()
    except BaseException as error:
        error.add_note("".join(traceback.format_tb(error.__traceback__)))
        try:
            said = pickle.dumps(error)
            pickle.loads(said)  # noqa: S301 (some exceptions cannot be read back)
        except Exception:
            said = pickle.dumps(PipelineError(f"{type(error).__name__}: {error}"))
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    with suppress(OSError), os.fdopen(writer, "wb") as pipe:
        pipe.write(said)
    os._exit(0)  # the parent's exit handlers must not run in the child


def _fork() -> int:
    with (
        warnings.catch_warnings()
    ):  # Python warns of forks beside NumPy's threads, which support them
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _be_the_child(parent: int) -> None:
    """Receive signals only from the parent, and end with it."""
    os.setpgid(0, 0)  # a terminal's Ctrl-C goes to the parent, which forwards it once
    for number in FORWARDED:
        signal.signal(number, signal.SIG_DFL)
    for number in SAVING:  # a cluster's signal must not run its job's handler here
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended in between
            os._exit(1)


def _forward_to(child: int) -> dict[int, "signal._HANDLER"]:
    """Forward signals to the child; return the previous handlers."""

    def forward(number: int, frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    def pause(number: int, frame: FrameType | None) -> None:  # Ctrl-Z pauses both
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGCONT)

    handlers = {**dict.fromkeys(FORWARDED, forward), signal.SIGTSTP: pause}
    free = [number for number in SAVING if signal.getsignal(number) == signal.SIG_DFL]
    handlers |= dict.fromkeys(free, forward)  # a cluster's job has handlers of its own
    return {number: signal.signal(number, handler) for number, handler in handlers.items()}


@contextmanager
def _held_signals() -> Iterator[None]:
    """Block signals until handlers are installed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGTSTP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
