"""What all routes of a server share: its models, threads, sessions and counters."""

import asyncio
from contextlib import suppress

from micronet_lm.runtime.engine import Engine
from micronet_lm.serve.batching import Batcher
from micronet_lm.serve.logs import Log
from micronet_lm.serve.metrics import Metrics, labelled
from micronet_lm.serve.sessions import Sessions
from micronet_lm.serve.settings import Settings
from micronet_lm.serve.shelf import Opened, Shelf
from micronet_lm.serve.workers import Workers


class Service:
    """One server's parts, from its start to its end."""

    def __init__(self, shelf: Shelf, settings: Settings, log: Log) -> None:
        self.shelf, self.settings, self.log = shelf, settings, log
        self.metrics = Metrics()
        limits = settings.limits
        self.workers = Workers(settings.threads, limits.waiting, limits.seconds)
        self.sessions = Sessions(shelf, self.workers, settings)
        self._batchers: dict[Engine, Batcher] = {}
        self._past_batches = self._past_texts = 0  # of models that are closed
        self._sweeper: asyncio.Task[None] | None = None
        self._reopening = asyncio.Lock()

    def batcher(self, opened: Opened) -> Batcher:
        """Return the queue of texts that a model scores."""
        engine = opened.lm.engine
        if engine not in self._batchers:
            self._batchers[engine] = Batcher(self.workers, engine)
        return self._batchers[engine]

    async def start(self) -> None:
        """Begin to look after sessions."""
        self._sweeper = asyncio.create_task(self._sweep())

    async def reopen(self) -> None:
        """Open changed files again; running requests keep the old ones."""
        async with self._reopening:
            told = await self.workers.do(self.shelf.reopen)
            for name, problem in told:
                if problem is None:
                    self.metrics.reopened += 1
                    self.log.info("model reopened", model=name)
                else:
                    self.log.error("model not reopened", model=name, problem=problem)
            if not told:
                self.log.info("no model has changed")
            current = {opened.lm.engine for opened in self.shelf.models}
            for engine in [one for one in self._batchers if one not in current]:
                gone = self._batchers.pop(engine)
                self._past_batches += gone.batches
                self._past_texts += gone.texts

    async def stop(self) -> None:
        """Save all sessions and end the threads."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        for problem in await self.sessions.close():
            self.log.error("session not saved", problem=problem)
        self.log.info("sessions saved", sessions=self.sessions.live)
        await asyncio.to_thread(self.workers.close)

    def metrics_text(self) -> str:
        """Return all counters and the numbers of the moment."""
        batchers = self._batchers.values()
        sessions = {"live": self.sessions.live, "saved": self.sessions.saved}
        return self.metrics.text(
            {
                "micronet_requests_in_hand": {"": self.workers.in_hand},
                "micronet_sessions": labelled("where", sessions),
                "micronet_batches_total": {
                    "": self._past_batches + sum(b.batches for b in batchers)
                },
                "micronet_batched_texts_total": {
                    "": self._past_texts + sum(b.texts for b in batchers)
                },
            }
        )

    async def _sweep(self) -> None:
        pause = min(1.0, self.settings.save_after / 2)
        while True:
            await asyncio.sleep(pause)
            try:
                await self.sessions.sweep()
            except OSError as error:  # a full disk: the sessions stay in memory
                self.log.error("sessions not saved", problem=str(error))
