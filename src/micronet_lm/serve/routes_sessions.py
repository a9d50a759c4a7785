"""Routes of sessions: texts that are read in parts, asked about, forked and deleted."""

from typing import Annotated

from fastapi import APIRouter, Path

from micronet_lm.runtime.state import State
from micronet_lm.runtime.suggestions import Candidate, Suggestions
from micronet_lm.serve.routes_questions import as_words, check_text_amount
from micronet_lm.serve.service import Service
from micronet_lm.serve.session_shapes import (
    AskAnswer,
    AskRequest,
    Deleted,
    FeedRequest,
    SessionAnswer,
    SessionRequest,
)
from micronet_lm.serve.sessions import Held

Name = Annotated[str, Path(description="The id that POST /v1/sessions gave.", max_length=100)]


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["Sessions"])
    sessions, workers, limits = service.sessions, service.workers, service.settings.limits

    @router.post("/v1/sessions", status_code=201)
    async def begin_session(asked: SessionRequest) -> SessionAnswer:
        """Begin a text that is read on."""
        opened = service.shelf.get(asked.model)

        def work(_: object) -> State:
            check_text_amount(opened.lm, asked.text, limits)
            state = opened.lm.start()
            state.feed(asked.text)
            return state

        return about(await sessions.add(opened, await workers.run(work)))

    @router.get("/v1/sessions/{name}")
    async def describe_session(name: Name) -> SessionAnswer:
        """Tell how much a session has read."""
        async with sessions.using(name) as held:
            return about(held)

    @router.post("/v1/sessions/{name}/feed")
    async def feed_session(name: Name, asked: FeedRequest) -> SessionAnswer:
        """Read more text."""
        async with sessions.using(name) as held:

            def work(_: object) -> None:
                check_text_amount(held.opened.lm, asked.text, limits)
                held.changed = True
                held.state.feed(asked.text)

            await workers.run(work, whole=True)
            return about(held)

    @router.post("/v1/sessions/{name}/ask")
    async def ask_session(name: Name, asked: AskRequest) -> AskAnswer:
        """Ask for words: for someone who types, next words, or endings of a word."""
        async with sessions.using(name) as held:

            def work(_: object) -> AskAnswer:
                found = answers(held, asked)
                replaces = found.replaces if isinstance(found, Suggestions) else ""
                tokens = held.state.tokens
                return AskAnswer(tokens=tokens, words=as_words(found), replaces=replaces)

            return await workers.run(work, whole=True)

    @router.post("/v1/sessions/{name}/fork", status_code=201)
    async def fork_session(name: Name) -> SessionAnswer:
        """Copy a session."""
        async with sessions.using(name) as held:
            opened, state = held.opened, await workers.run(lambda _: held.state.fork(), whole=True)
        return about(await sessions.add(opened, state))

    @router.delete("/v1/sessions/{name}")
    async def delete_session(name: Name) -> Deleted:
        """Forget a session, in memory and on disk."""
        await sessions.delete(name)
        return Deleted(id=name)

    return router


def answers(held: Held, asked: AskRequest) -> list[Candidate]:
    """Answer a question to a session; one that has read nothing begins a line."""
    state = held.state
    if asked.what == "suggest":
        return state.suggest(asked.k)
    if not state.tokens:
        state = held.opened.lm.begun("")
    if asked.what == "next":
        return state.top_k(asked.k, asked.special)
    return state.complete(asked.prefix, asked.k, asked.special)


def about(held: Held) -> SessionAnswer:
    """Return what a client is told of a session."""
    return SessionAnswer(
        id=held.name,
        model=held.opened.name,
        created=held.created,
        tokens=held.state.tokens,
    )
