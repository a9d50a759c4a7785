"""Routes for the people who run a server, and the page."""

from importlib import resources
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

import micronet_lm
from micronet_lm.serve.refusals import NotFound
from micronet_lm.serve.service import Service
from micronet_lm.serve.shapes import Card, Health

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def page_files() -> dict[str, bytes]:
    """Return the page's files by name, as they are in the package."""
    folder = resources.files("micronet_lm.serve") / "page"
    return {
        entry.name: entry.read_bytes()
        for entry in folder.iterdir()
        if entry.name.rpartition(".")[2] in _TYPES
    }


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["Operations"])
    files = page_files()  # read once: no path is made of what a client asks for

    @router.get("/health")
    async def health() -> Health:
        """Say that the server answers."""
        return Health(
            version=micronet_lm.__version__, models=[one.name for one in service.shelf.models]
        )

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        """Give all counters in Prometheus's text form."""
        return PlainTextResponse(
            service.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    @router.get("/card", response_model=Card)
    async def card(model: str | None = None) -> Any:
        """Describe a model: its card, its bytes by part, and its costs by layer."""
        opened = service.shelf.get(model)
        return await service.workers.run(lambda _: opened.description)

    @router.get("/", include_in_schema=False)
    async def page() -> Response:
        return _file("index.html")

    @router.get("/page/{name}", include_in_schema=False)
    async def page_file(name: str) -> Response:
        return _file(name)

    @router.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return _file("icon.svg")

    def _file(name: str) -> Response:
        if name not in files:
            raise NotFound("there is no such file of the page")
        kind = _TYPES[name.rpartition(".")[2]]
        return Response(files[name], media_type=kind, headers={"cache-control": "no-cache"})

    return router
