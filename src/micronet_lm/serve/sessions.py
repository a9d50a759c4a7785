"""Sessions of clients: texts read in parts, in memory while they are used and on disk after.

A session's name is a secret of 128 random bits: who knows it may read on, nobody else.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from micronet_lm.errors import InferenceError
from micronet_lm.runtime.state import State
from micronet_lm.serve.refusals import Busy, NotFound, OtherModel
from micronet_lm.serve.session_files import DamagedSessionError, Saved, SessionFiles
from micronet_lm.serve.settings import Settings
from micronet_lm.serve.shelf import Opened, Shelf
from micronet_lm.serve.workers import Workers


@dataclass(eq=False)
class Held:
    """A session in memory."""

    name: str
    opened: Opened
    state: State
    created: int
    used: float = field(default_factory=time.monotonic)
    changed: bool = True
    """Whether the disk does not have it as it is."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    gone: bool = False
    """Whether it was dropped or deleted while someone waited for its lock."""

    @property
    def about(self) -> Saved:
        """What its file says of it."""
        return Saved(model=self.opened.name, created=self.created, tokens=self.state.tokens)


class Sessions:
    """All sessions of a server."""

    def __init__(self, shelf: Shelf, workers: Workers, settings: Settings) -> None:
        self._shelf, self._workers, self._settings = shelf, workers, settings
        self._held: dict[str, Held] = {}
        # Each lock lives as long as a request has it.
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.files = SessionFiles(settings.sessions) if settings.sessions else None

    @property
    def live(self) -> int:
        """Sessions in memory."""
        return len(self._held)

    @property
    def saved(self) -> int:
        """Sessions that are on disk only."""
        files = self.files
        return 0 if files is None else len(files) - sum(name in files for name in self._held)

    async def add(self, opened: Opened, state: State) -> Held:
        """Keep a new session."""
        limit = self._settings.limits.sessions
        if self.live + self.saved >= limit:
            raise Busy(f"there are {limit:,} sessions already: delete some first", retry_after=60)
        held = Held(secrets.token_urlsafe(16), opened, state, int(time.time()))
        self._held[held.name] = held
        await self._make_room(held)
        return held

    @asynccontextmanager
    async def using(self, name: str) -> AsyncIterator[Held]:
        """Give a session to one request at a time; bring it back from disk where it is there."""
        while True:
            held = self._held.get(name) or await self._restored(name)
            async with held.lock:
                if held.gone:  # saved and dropped, or deleted, while this request waited
                    continue
                held.used = time.monotonic()
                try:
                    yield held
                finally:
                    held.used = time.monotonic()
                return

    async def delete(self, name: str) -> None:
        """Remove a session from memory and disk."""
        async with self.using(name) as held:
            held.gone = True
            del self._held[name]
            if self.files is not None:
                self.files.delete(name)

    async def save(self, held: Held) -> None:
        """Write a changed session to disk; the caller has its lock."""
        if self.files is None or not held.changed:
            return
        files, about = self.files, held.about
        await self._workers.do(lambda: files.write(held.name, about, held.state.save()))
        held.changed = False

    async def sweep(self) -> None:
        """Save what is idle, drop from memory what is idle for long, delete what has expired."""
        now = time.monotonic()
        for held in list(self._held.values()):
            idle = now - held.used
            if held.lock.locked() or idle < self._settings.save_after:
                continue
            async with held.lock:
                if held.gone:
                    continue
                await self.save(held)
                if idle >= self._settings.expire_after or (
                    idle >= self._settings.drop_after and self.files is not None
                ):
                    self._drop(held)
        if self.files is not None:
            for name in self.files.older_than(self._settings.expire_after):
                if name not in self._held:
                    self.files.delete(name)

    async def close(self) -> list[str]:
        """Save all sessions, whoever uses them; return what went wrong."""
        problems = []
        for held in list(self._held.values()):
            async with held.lock:
                try:
                    await self.save(held)
                except OSError as error:  # a full disk: others may be smaller
                    problems.append(str(error))
        return problems

    async def _restored(self, name: str) -> Held:
        files = self.files
        if files is None or name not in files:
            raise _no_session()
        lock = self._opening.setdefault(name, asyncio.Lock())
        async with lock:
            if name in self._held:  # another request was quicker
                return self._held[name]
            if name not in files:  # it was deleted while this request waited
                raise _no_session()
            held = await self._workers.do(lambda: self._read(files, name))
            self._held[name] = held
        await self._make_room(held)
        return held

    def _read(self, files: SessionFiles, name: str) -> Held:
        try:
            about, saved = files.read(name)
            opened = self._shelf.get(about.model)
            state = opened.lm.restore(saved)
        except (DamagedSessionError, InferenceError, NotFound, OSError) as error:
            raise OtherModel(
                f"the session cannot be read with this server's models ({error}): begin a new one"
            ) from None
        return Held(name, opened, state, about.created, changed=False)

    async def _make_room(self, kept: Held) -> None:
        """Move the sessions that were not used for longest to disk while there are too many."""
        if self.files is None:
            return
        excess = self.live - self._settings.limits.live
        for held in sorted(self._held.values(), key=lambda one: one.used)[: max(0, excess)]:
            if held is kept or held.lock.locked():
                continue
            async with held.lock:
                if held.gone:
                    continue
                try:
                    await self.save(held)
                except OSError:  # a full disk: it stays in memory, and the sweep tells of it
                    return
                self._drop(held)

    def _drop(self, held: Held) -> None:
        held.gone = True
        self._held.pop(held.name, None)


def _no_session() -> NotFound:
    return NotFound("there is no such session: it was deleted, has expired or never began")
