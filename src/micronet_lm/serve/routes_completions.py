"""`POST /v1/completions`, `GET /v1/models` and what clients of OpenAI's shape ask besides."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from micronet_lm.errors import MicronetError
from micronet_lm.serve.completion_shapes import (
    Choice,
    CompletionAnswer,
    CompletionRequest,
    as_event,
)
from micronet_lm.serve.completions import (
    Job,
    Part,
    check_amount,
    make_job,
    parts,
    told,
    whole_choices,
    words_of,
)
from micronet_lm.serve.refusals import Broken, Refusal, as_json
from micronet_lm.serve.service import Service
from micronet_lm.serve.shapes import (
    DetokenizeAnswer,
    DetokenizeRequest,
    ModelList,
    ModelObject,
    TokenizeAnswer,
    TokenizeRequest,
    TokenizerInfo,
)
from micronet_lm.serve.shelf import Opened
from micronet_lm.serve.workers import Deadline

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The continuations; with `stream` as server-sent events.",
        "content": {
            "text/event-stream": {
                "schema": {"type": "object", "properties": {"data": {"type": "string"}}}
            }
        },
    }
}


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["OpenAI's shape"])
    limits, workers = service.settings.limits, service.workers

    @router.get("/v1/models")
    async def list_models() -> ModelList:
        """List the models of this server."""
        return ModelList(data=[_as_model(one) for one in service.shelf.models])

    @router.get("/v1/models/{name}")
    async def describe_model(name: str) -> ModelObject:
        """Describe one model of this server."""
        return _as_model(service.shelf.get(name))

    @router.post("/v1/completions", response_model=CompletionAnswer, responses=EVENTS)
    async def complete_texts(asked: CompletionRequest) -> Any:
        """Continue texts."""
        opened = service.shelf.get(asked.model)
        head = {"id": f"cmpl-{secrets.token_hex(12)}", "created": int(time.time())}
        if asked.stream:
            job = await workers.run(lambda _: make_job(opened.lm, asked, limits))
            usage = bool(asked.stream_options and asked.stream_options.include_usage)
            events = _events(service, opened, job, head, usage)
            return StreamingResponse(events, media_type="text/event-stream")

        def work(deadline: Deadline) -> Any:
            return whole_choices(make_job(opened.lm, asked, limits), deadline)

        choices, usage_told = await workers.run(work)
        service.metrics.tokens["read"] += usage_told.prompt_tokens
        service.metrics.tokens["written"] += usage_told.completion_tokens
        answer = CompletionAnswer(**head, model=opened.name, choices=choices, usage=usage_told)
        return Response(answer.model_dump_json(), media_type="application/json")

    @router.get("/tokenizer_info")
    async def tokenizer_info(model: str | None = None) -> TokenizerInfo:
        """Describe how a model splits text."""
        lm = service.shelf.get(model).lm
        return TokenizerInfo(
            tokenizer_class=lm.encoder.tokenizer.name, vocab_size=lm.engine.vocabulary_size
        )

    @router.post("/tokenize")
    async def tokenize(asked: TokenizeRequest) -> TokenizeAnswer:
        """Split a text into tokens."""
        lm = service.shelf.get(asked.model).lm

        def work(_: Deadline) -> TokenizeAnswer:
            tokens = lm.encoder.tokens(asked.prompt)
            return TokenizeAnswer(
                count=len(tokens),
                max_model_len=limits.prompt,
                tokens=lm.encoder.ids_of(tokens).tolist(),
                token_strs=tokens if asked.return_token_strs else None,
            )

        return await workers.run(work)

    @router.post("/detokenize")
    async def detokenize(asked: DetokenizeRequest) -> DetokenizeAnswer:
        """Put tokens together to text."""
        lm = service.shelf.get(asked.model).lm
        check_amount(len(asked.tokens), limits)
        text = await workers.run(lambda _: lm.join(words_of(lm, asked.tokens)))
        return DetokenizeAnswer(prompt=text)

    return router


def _as_model(opened: Opened) -> ModelObject:
    return ModelObject(id=opened.name, created=opened.created)


async def _events(
    service: Service, opened: Opened, job: Job, head: dict[str, Any], usage: bool
) -> AsyncIterator[str]:
    """Yield the parts of a completion as they are written.

    The worker thread does not wait for the client: what it writes is bounded, and queued here.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Part | BaseException | None] = asyncio.Queue()
    gone = False

    def put(item: Part | BaseException | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, item)

    def work(deadline: Deadline) -> None:
        for part in parts(job, deadline):
            if gone:
                return
            put(part)

    async def write() -> None:
        try:
            await service.workers.run(work)
            await queue.put(None)
        except Exception as error:
            await queue.put(error)

    writer = asyncio.create_task(write())
    written = 0
    try:
        while (item := await queue.get()) is not None:
            if isinstance(item, BaseException):
                yield as_event(_problem(service, item))
                return
            written += item.written
            choice = Choice(
                index=item.index,
                text=item.text,
                logprobs=told(job, [item]) if item.tokens else None,
                finish_reason=item.finish,
            )
            answer = CompletionAnswer(**head, model=opened.name, choices=[choice])
            yield as_event(answer.model_dump_json(exclude={"usage"}))
        if usage:
            answer = CompletionAnswer(
                **head, model=opened.name, choices=[], usage=job.usage(written)
            )
            yield as_event(answer.model_dump_json())
        yield as_event("[DONE]")
    finally:
        gone = True
        service.metrics.tokens["read"] += job.usage(0).prompt_tokens
        service.metrics.tokens["written"] += written
        writer.cancel()


def _problem(service: Service, error: BaseException) -> str:
    """Return an error within a stream, whose status was sent already."""
    if isinstance(error, Refusal):
        return json.dumps(as_json(error))
    if isinstance(error, MicronetError):
        return json.dumps(as_json(Refusal(str(error))))
    service.log.error("unexpected error", problem=repr(error))
    return json.dumps(as_json(Broken("the server failed at this request; its log says why")))
