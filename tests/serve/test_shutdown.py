"""Work that is cancelled, disks that are full, sessions that come back twice: nothing is lost."""

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from micronet_lm.runtime.places import packed_file
from micronet_lm.serve.sessions import Sessions
from micronet_lm.serve.settings import Limits, Settings
from micronet_lm.serve.shelf import Shelf
from micronet_lm.serve.workers import Workers

PATIENCE = 60


def test_work_on_a_session_ends_before_whoever_waits_is_cancelled() -> None:
    """At the end of the time for a shutdown requests are cancelled, and sessions saved after."""
    begun, go_on, done = threading.Event(), threading.Event(), []

    async def scene() -> None:
        workers = Workers(1, 4, PATIENCE)

        def work(_: object) -> None:
            begun.set()
            assert go_on.wait(PATIENCE)
            done.append("work")

        asked = asyncio.create_task(workers.run(work, whole=True))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        asked.cancel()
        asyncio.get_running_loop().call_later(0.05, go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asked, PATIENCE)
        done.append("cancelled")
        workers.close()

    asyncio.run(scene())
    assert done == ["work", "cancelled"]


class Scene:
    """Sessions of the shipped model, kept in a folder."""

    def __init__(self, folder: Path, **limits: int) -> None:
        self.settings = Settings(sessions=folder / "sessions", limits=Limits(**limits))
        self.workers = Workers(2, 16, PATIENCE)
        self.shelf = Shelf({"demo": packed_file("demo")})
        self.sessions = self.restarted()

    def restarted(self) -> Sessions:
        """Return the sessions as another server finds them in the folder."""
        return Sessions(self.shelf, self.workers, self.settings)

    async def begin(self, text: str) -> str:
        opened = self.shelf.get()
        state = opened.lm.start()
        state.feed(text)
        return (await self.sessions.add(opened, state)).name


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts of sessions, by name, that cannot be written."""
    refused: list[str] = []
    from micronet_lm.serve.session_files import SessionFiles

    write = SessionFiles.write

    def failing(files: SessionFiles, name: str, about: Any, state: bytes) -> None:
        if name in refused:
            raise OSError(28, "No space left on device")
        write(files, name, about, state)

    monkeypatch.setattr(SessionFiles, "write", failing)
    return refused


def test_a_session_that_cannot_be_written_does_not_cost_the_others(
    tmp_path: Path, full_disk: list[str]
) -> None:
    async def scene() -> None:
        own = Scene(tmp_path)
        names = [await own.begin(f"Return a {word}") for word in ("list", "new", "path")]
        full_disk.append(names[0])
        problems = await asyncio.wait_for(own.sessions.close(), PATIENCE)
        assert len(problems) == 1
        assert "No space left" in problems[0]
        assert own.sessions.files is not None
        assert [name in own.sessions.files for name in names] == [False, True, True]
        own.workers.close()

    asyncio.run(scene())


def test_a_full_disk_does_not_refuse_a_new_session(tmp_path: Path, full_disk: list[str]) -> None:
    """The one that should make room stays in memory."""

    async def scene() -> None:
        own = Scene(tmp_path, live=1)
        first = await own.begin("Return a list")
        full_disk.append(first)
        second = await own.begin("Return a new")
        for name in (first, second):
            async with own.sessions.using(name) as held:
                assert held.state.tokens == 3
        own.workers.close()

    asyncio.run(scene())


def test_requests_that_bring_a_session_back_at_once_share_it(tmp_path: Path) -> None:
    async def scene() -> None:
        own = Scene(tmp_path, live=1)
        first = await own.begin("Return a")
        await own.begin("Raise a")  # the first goes to disk
        assert own.sessions.live == 1

        async def feed(text: str) -> None:
            async with own.sessions.using(first) as held:
                await own.workers.run(lambda _: held.state.feed(text), whole=True)
                held.changed = True

        texts = [" new", " list", " of", " the", " items"]
        await asyncio.wait_for(asyncio.gather(*map(feed, texts)), PATIENCE)
        async with own.sessions.using(first) as held:
            assert held.state.tokens == 2 + len(texts)
        await own.sessions.delete(first)
        own.workers.close()

    asyncio.run(scene())


def test_idle_sessions_are_saved_leave_memory_come_back_and_expire(tmp_path: Path) -> None:
    async def scene() -> None:
        own = Scene(tmp_path)
        sessions, settings = own.sessions, own.settings
        assert sessions.files is not None
        name = await own.begin("Return a new")
        async with sessions.using(name) as held:
            expected = held.state.top_k(3)

        async def idle_for(seconds: float) -> tuple[int, int, bool]:
            held.used = time.monotonic() - seconds
            await sessions.sweep()
            return sessions.live, sessions.saved, name in (sessions.files or ())

        assert await idle_for(-PATIENCE) == (1, 0, False)
        assert await idle_for(settings.save_after) == (1, 0, True)
        assert await idle_for(settings.drop_after) == (0, 1, True)
        async with sessions.using(name) as back:
            assert back is not held
            assert back.state.top_k(3) == expected
        (file,) = tmp_path.glob("sessions/*.session")
        for age, files in ((settings.expire_after - 3600, [file]), (settings.expire_after, [])):
            os.utime(file, (time.time() - age,) * 2)
            await own.restarted().sweep()
            assert list(file.parent.glob("*.session")) == files
        own.workers.close()

    asyncio.run(scene())
