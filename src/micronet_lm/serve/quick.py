"""The questions that come most often, answered without the layers of the framework.

A request for JSON with one shape for its body and one for its answer needs nothing of them. What is
not of that kind, or not valid, goes to the framework, which says what is wrong: answers and
refusals are the same either way.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, get_type_hints

from fastapi import APIRouter
from fastapi.routing import APIRoute

from micronet_lm.errors import MicronetError
from micronet_lm.serve.guard import App, Message, Receive, Scope, Send
from micronet_lm.serve.shapes import Answer, Request

Refused = Callable[[MicronetError], App]
"""Return what answers with a refusal."""


class _Plain(NamedTuple):
    route: APIRoute
    shape: type[Request]
    answer: Callable[[Any], Awaitable[Answer]]


class Quick:
    """Answers plain questions; passes all others on."""

    def __init__(self, app: App, routers: Iterable[APIRouter], refused: Refused) -> None:
        self._app, self._refused = app, refused
        found = (_plain(route) for router in routers for route in router.routes)
        self._plain = {plain.route.path: plain for plain in found if plain is not None}

    @property
    def paths(self) -> Sequence[str]:
        """The paths that are answered here."""
        return tuple(self._plain)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        plain = self._plain.get(scope["path"]) if scope["type"] == "http" else None
        if plain is None or scope["method"] != "POST" or not _is_json(scope):
            await self._app(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1]["type"] == "http.request" and messages[-1].get("more_body"):
            messages.append(await receive())
        body = b"".join(message.get("body", b"") for message in messages)
        try:
            if messages[-1]["type"] != "http.request":  # the client went
                raise ValueError
            asked = plain.shape.model_validate_json(body)
        except ValueError:  # pydantic's is one, too
            await self._app(scope, _again(messages, receive), send)
            return
        scope["route"] = plain.route
        try:
            answer = await plain.answer(asked)
        except MicronetError as error:
            await self._refused(error)(scope, receive, send)
            return
        content = answer.__pydantic_serializer__.to_json(answer)
        length = str(len(content)).encode()
        headers = [(b"content-length", length), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def _plain(route: object) -> _Plain | None:
    """Return how a route is answered, if its body and its answer have one shape each."""
    if not isinstance(route, APIRoute) or route.methods != {"POST"} or "{" in route.path:
        return None
    given = get_type_hints(route.endpoint)
    answer = given.pop("return", None)
    shapes = list(given.values())
    if len(shapes) != 1 or not _is_a(shapes[0], Request) or not _is_a(answer, Answer):
        return None
    if route.status_code not in {None, 200}:
        return None
    return _Plain(route, shapes[0], route.endpoint)


def _is_a(kind: object, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _is_json(scope: Scope) -> bool:
    """Return whether the body says of itself that it is JSON, as nearly all do."""
    return any(
        key == b"content-type" and kind == b"application/json" for key, kind in scope["headers"]
    )


def _again(messages: list[Message], receive: Receive) -> Receive:
    """Return a way to receive what was received already, and then the rest."""
    left = iter(messages)

    async def receiving() -> Message:
        for message in left:
            return message
        return await receive()

    return receiving
