"""A WebSocket for someone who types: one message and one answer for each keystroke."""

import time
from dataclasses import dataclass

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from micronet_lm.errors import MicronetError
from micronet_lm.runtime.edited_text import EditedText
from micronet_lm.serve.guard import SUBPROTOCOL
from micronet_lm.serve.refusals import NotFound, TooLarge
from micronet_lm.serve.routes_questions import as_words
from micronet_lm.serve.service import Service
from micronet_lm.serve.session_shapes import Keystroke, SocketError, Suggested
from micronet_lm.serve.validation import sentence_of


@dataclass
class _Editor:
    """One client's text as it is now."""

    read: EditedText
    text: str = ""


def routes(service: Service) -> APIRouter:
    """Return the route."""
    router = APIRouter()
    limits = service.settings.limits

    @router.websocket("/v1/type")
    async def type_text(socket: WebSocket, model: str | None = None) -> None:
        """Answer keystrokes until the client goes."""
        offered = socket.scope.get("subprotocols", [])
        # Also what is refused is accepted first: a browser tells no reason of a failed handshake.
        await socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        if service.metrics.sockets >= limits.sockets:
            service.metrics.refused["busy"] += 1
            await socket.close(
                1013, f"{limits.sockets} WebSockets are open already: try again later"
            )
            return
        try:
            opened = service.shelf.get(model)
        except NotFound as error:
            service.metrics.refused["not_found"] += 1
            await socket.close(1008, _as_reason(error))
            return
        service.metrics.sockets += 1
        editor = _Editor(EditedText(opened.lm))
        try:
            while True:
                await socket.send_text(await _answer(service, editor, await socket.receive_text()))
        except (WebSocketDisconnect, KeyError):  # a message of bytes has no text
            pass
        finally:
            service.metrics.sockets -= 1

    return router


def _as_reason(error: Exception) -> str:
    """Return a sentence in at most 123 bytes, which is what a closing frame holds."""
    return str(error).encode()[:123].decode(errors="ignore")


async def _answer(service: Service, editor: _Editor, message: str) -> str:
    number, limit = 0, service.settings.limits.body
    began = time.perf_counter()
    try:
        asked = Keystroke.model_validate_json(message)
        number = asked.id
        text = editor.text[: asked.keep] + asked.text
        if len(text) > limit:
            raise TooLarge(
                f"a text may have at most {limit:,} characters here: it has {len(text):,}"
            )
        editor.text = text
        found = await service.workers.run(lambda _: editor.read.suggest(text, asked.k), whole=True)
        ms = round(1000 * (time.perf_counter() - began), 3)
        told = Suggested(id=number, words=as_words(found), replaces=found.replaces, ms=ms)
        return told.model_dump_json()
    except ValidationError as error:
        return SocketError(id=number, error=sentence_of(error.errors())).model_dump_json()
    except MicronetError as error:
        return SocketError(id=number, error=str(error)).model_dump_json()
