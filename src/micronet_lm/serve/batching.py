"""Gather the texts of requests that score into batches of the engine.

While a batch is computed, texts of other requests wait; the next batch takes all of them. Without
others a request is its own batch and does not wait.
"""

import asyncio
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from micronet_lm.runtime.engine import Engine, Floats
from micronet_lm.serve.workers import Workers

Ids = NDArray[np.int64]

MOST_TOKENS = 1 << 16
"""Tokens of one batch; a single request may have more."""


class _Request(NamedTuple):
    texts: list[Ids]
    answer: "asyncio.Future[list[Floats]]"

    @property
    def tokens(self) -> int:
        return sum(map(len, self.texts))


class Batcher:
    """One model's queue of texts to score."""

    def __init__(self, workers: Workers, engine: Engine) -> None:
        self._workers, self._engine = workers, engine
        self._queue: deque[_Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self.batches = 0
        """Batches that were computed."""
        self.texts = 0
        """Texts in all batches."""

    async def score(self, texts: list[Ids]) -> list[Floats]:
        """Return the log-probabilities of each text's tokens after its first."""
        if not texts:
            return []
        with self._workers.admitted() as deadline:
            answer: asyncio.Future[list[Floats]] = asyncio.get_running_loop().create_future()
            self._queue.append(_Request(texts, answer))
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._work())
            try:
                return await asyncio.wait_for(answer, deadline.left)
            except TimeoutError:
                deadline.abandoned = True
                deadline.check()
                raise

    async def _work(self) -> None:
        while self._queue:
            taken = self._take()
            texts = [text for request in taken for text in request.texts]
            self.batches, self.texts = self.batches + 1, self.texts + len(texts)
            threads = min(self._workers.threads, len(texts))
            try:
                scores = await self._workers.do(lambda t=texts, n=threads: self._score(t, n))  # type: ignore[misc]
            except Exception as error:
                for request in taken:
                    if not request.answer.done():
                        request.answer.set_exception(error)
                continue
            for request in taken:
                own, scores = scores[: len(request.texts)], scores[len(request.texts) :]
                if not request.answer.done():
                    request.answer.set_result(own)

    def _take(self) -> list[_Request]:
        """Take requests that still wait, as many as fit in a batch."""
        taken: list[_Request] = []
        tokens = 0
        while self._queue and (not taken or tokens + self._queue[0].tokens <= MOST_TOKENS):
            request = self._queue.popleft()
            if not request.answer.done():
                taken.append(request)
                tokens += request.tokens
        return taken

    def _score(self, texts: list[Ids], threads: int) -> list[Floats]:
        return self._engine.score_batch(texts, threads)
