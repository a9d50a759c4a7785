"""The application: routes, what refusals look like, and the OpenAPI document."""

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import micronet_lm
from micronet_lm.errors import MicronetError
from micronet_lm.runtime.scores import UnknownWordsWarning
from micronet_lm.serve import (
    routes_completions,
    routes_operations,
    routes_questions,
    routes_sessions,
    typing_socket,
)
from micronet_lm.serve.guard import App, Guard
from micronet_lm.serve.quick import Quick
from micronet_lm.serve.refusals import NotFound, Refusal, WrongMethod, as_json
from micronet_lm.serve.service import Service
from micronet_lm.serve.shapes import ErrorAnswer
from micronet_lm.serve.validation import sentence_of

_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": about}
    for status, about in {
        400: "The request is not of the form that this document describes, or has no answer.",
        401: "The key is missing or wrong.",
        404: "There is no such model or session.",
        408: "The request did not arrive in time.",
        409: "The session belongs to another model file.",
        413: "The request is beyond a limit.",
        421: "The server does not go by this host name.",
        429: "Too many requests or sessions; Retry-After says when to ask again.",
        503: "The answer was not ready in time.",
    }.items()
}


def make_app(service: Service) -> App:
    """Return the application behind its guard."""
    warnings.simplefilter("ignore", UnknownWordsWarning)  # answers have the number of unknown words

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="micronet",
        summary="Small language models: next words, completions, scores.",
        version=micronet_lm.__version__,
        docs_url=None,  # they would load scripts of other sites
        redoc_url=None,
        lifespan=lifespan,
        responses=_REFUSALS,
    )
    parts = (routes_completions, routes_questions, routes_sessions, routes_operations)
    routers = [part.routes(service) for part in parts]
    for router in routers:
        app.include_router(router)
    app.include_router(typing_socket.routes(service))

    def refused(error: Exception) -> JSONResponse:
        return _refused(service, error)

    async def handled(_: Request, error: Exception) -> JSONResponse:
        return refused(error)

    for kind in (MicronetError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, handled)
    app.openapi = lambda: _document(app, service)  # type: ignore[method-assign]
    guarded: App = Guard(Quick(app, routers, refused), service)
    if service.settings.origins:
        guarded = CORSMiddleware(
            guarded,
            allow_origins=list(service.settings.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type"],
        )
    return guarded


def _refused(service: Service, error: Exception) -> JSONResponse:
    refusal = _as_refusal(error)
    service.metrics.refused[refusal.code or "invalid"] += 1
    headers = refusal.headers
    if isinstance(error, HTTPException):
        headers = {**headers, **(error.headers or {})}
    return JSONResponse(as_json(refusal), refusal.status, headers)


def _as_refusal(error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, RequestValidationError):
        return Refusal(sentence_of(error.errors()))
    if isinstance(error, HTTPException):
        if error.status_code == 404:
            return NotFound("there is nothing here; GET /openapi.json lists what there is")
        if error.status_code == 405:
            return WrongMethod("this path is asked in another way; GET /openapi.json lists how")
        return Refusal(str(error.detail))
    return Refusal(str(error))


def _document(app: FastAPI, service: Service) -> dict[str, Any]:
    """Return the OpenAPI document: wrong requests are refused with 400, not with 422."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
                if service.settings.api_key:
                    operation["security"] = [{"key": []}]
        schemas = document["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        if service.settings.api_key:
            scheme = {"type": "http", "scheme": "bearer"}
            document["components"]["securitySchemes"] = {"key": scheme}
        app.openapi_schema = document
    return app.openapi_schema
