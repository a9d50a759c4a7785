"""Checks before any route: host, origin, key, size and time of a request; one log line for each.

A plain ASGI application around the one that answers, so that a body that is too large is refused
before anything reads it.
"""

import asyncio
import hmac
import ipaddress
import json
import time
import traceback
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from micronet_lm.serve.logs import SHOWN
from micronet_lm.serve.refusals import (
    Broken,
    NotAllowed,
    Refusal,
    SlowClient,
    TooLarge,
    WrongHost,
    as_json,
)
from micronet_lm.serve.service import Service

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = ("/", "/health", "/favicon.ico")
"""Paths that need no key: they hold nothing of the models. So do the page's files."""
PAGE = "/page/"
SUBPROTOCOL = "micronet"
"""Of the WebSocket. `key.` and the key in URL-safe base 64 may follow: browsers send no headers."""

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": (
        "default-src 'self'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


_FIXED = [(key.encode(), value.encode()) for key, value in HEADERS.items()]


class Guard:
    """Checks, counts and logs every request."""

    def __init__(self, app: App, service: Service) -> None:
        self._app, self._service = app, service
        self._settings = service.settings
        self._names = {"localhost", self._settings.host, *self._settings.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        method = scope["method"]
        if method == "HEAD":  # answered as GET; the server underneath leaves the body out
            scope = {**scope, "method": "GET"}
        body = _Body(receive, self._settings.limits.body, self._settings.limits.seconds)
        status, sent = 500, 0

        async def sending(message: Message) -> None:
            nonlocal status, sent
            if body.refusal is not None and message.get("refused") is None:
                return  # what the application makes of a body that was cut off
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_FIXED]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        try:
            try:
                headers = _headers(scope)
                self._check_host(headers)
                self._check_key(scope["path"], headers.get("authorization", ""))
                await body.check(headers)
                await self._app(scope, body.receive, sending)
                if body.refusal is not None:
                    raise body.refusal
            except Refusal as refusal:
                await self._refuse(refusal, sending)
            except Exception as error:
                self._service.log.error(
                    "unexpected error", traceback="".join(traceback.format_exception(error))
                )
                if not sent:
                    await self._refuse(
                        Broken("the server failed at this request; its log says why"), sending
                    )
        finally:
            seconds = time.perf_counter() - began
            route = _route(scope)
            self._service.metrics.answered(route, method, status, seconds)
            texts = {"body": body.shown} if self._service.log.texts else {}
            self._service.log.info(
                "request",
                method=method,
                route=route,
                status=status,
                ms=round(1000 * seconds, 2),
                received=body.size,
                sent=sent,
                **texts,
            )

    async def _refuse(self, refusal: Refusal, send: Send) -> None:
        self._service.metrics.refused[refusal.code or "invalid"] += 1
        content = json.dumps(as_json(refusal)).encode()
        headers = {
            "content-type": "application/json",
            "content-length": str(len(content)),
            **refusal.headers,
        }
        if refusal.status in {408, 413}:
            headers["connection"] = "close"  # the rest of the body is not read
        await send(
            {
                "type": "http.response.start",
                "refused": True,
                "status": refusal.status,
                "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
            }
        )
        await send({"type": "http.response.body", "refused": True, "body": content})

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)
        try:
            self._check_host(headers)
            self._check_origin(headers)
            offered = scope.get("subprotocols", [])
            key = next((word[4:] for word in offered if word.startswith("key.")), "")
            bearer = f"Bearer {_decoded(key)}" if key else headers.get("authorization", "")
            self._check_key(scope["path"], bearer)
        except Refusal as refusal:
            self._service.metrics.refused[refusal.code or "invalid"] += 1
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": str(refusal)[:120]})
            return
        await self._app(scope, receive, send)

    def _check_host(self, headers: dict[str, str]) -> None:
        """Refuse names that this server does not go by.

        A page of another site may have its own name point here (DNS rebinding); then the browser
        sends that name, which is neither `localhost` nor a numeric address.
        """
        given = headers.get("host", "")
        name = _host_name(given)
        if name in self._names or _is_numeric(name):
            return
        raise WrongHost(
            f"this server does not go by the host name {name[:100]!r}: start it with --allow-host"
        )

    def _check_origin(self, headers: dict[str, str]) -> None:
        """Refuse WebSockets of other sites' pages, which CORS does not hold back."""
        origin = headers.get("origin")
        if origin is None or origin in self._settings.origins:
            return
        if urlsplit(origin).netloc != headers.get("host", ""):
            raise WrongHost(f"pages of {origin[:100]} may not ask this server")

    def _check_key(self, path: str, given: str) -> None:
        key = self._settings.api_key
        if key is None or path in OPEN or path.startswith(PAGE):
            return
        scheme, _, presented = given.partition(" ")
        fits = hmac.compare_digest(presented.strip().encode(), key.encode())
        if scheme.lower() != "bearer" or not fits:
            raise NotAllowed("this server needs its key: send 'Authorization: Bearer KEY'")


class _Body:
    """A request's body while it is received."""

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        self._receive, self._limit = receive, limit
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._whole = False
        self.size = 0
        self.refusal: Refusal | None = None
        self._first = b""

    async def check(self, headers: dict[str, str]) -> None:
        """Refuse a body that says that it is too large."""
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise Refusal(f"Content-Length must be a whole number, got {length[:50]!r}")
        if int(length[:20]) > self._limit:
            raise self._too_large()

    async def receive(self) -> Message:
        """Receive the next message; bound the body's size and the time it takes."""
        if self._whole:  # what comes now is the client's end, for which a stream may wait long
            return await self._receive()
        try:
            # Not wait_for, which makes a task of it.
            async with asyncio.timeout(max(0.0, self._end - time.monotonic())):
                message = await self._receive()
        except TimeoutError:
            return self._cut(
                SlowClient(
                    f"the request did not arrive within {self._seconds:g} seconds: send it again"
                )
            )
        if message["type"] == "http.request":
            content: bytes = message.get("body", b"")
            self.size += len(content)
            self._first += content[: max(0, SHOWN - len(self._first))]
            if self.size > self._limit:
                return self._cut(self._too_large())
            self._whole = not message.get("more_body", False)
        return message

    def _cut(self, refusal: Refusal) -> Message:
        """Record the refusal; the application is told that the client has disconnected."""
        self.refusal, self._whole = refusal, True
        return {"type": "http.disconnect"}

    @property
    def shown(self) -> str:
        """Its beginning, for logs."""
        return self._first.decode("utf-8", "replace")

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a request may have at most {self._limit:,} bytes: send it in parts")


def _headers(scope: Scope) -> dict[str, str]:
    return {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}


def _route(scope: Scope) -> str:
    """Return the route's pattern, which holds no client's session; `other` where there is none."""
    route = scope.get("route")
    path = getattr(route, "path", None)
    return str(path) if path else "other"


def _host_name(host: str) -> str:
    """Return a Host header's name, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].rstrip(".").lower()


@lru_cache(256)
def _is_numeric(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _decoded(key: str) -> str:
    try:
        return urlsafe_b64decode(key + "=" * (-len(key) % 4)).decode()
    except ValueError:
        return ""
