"""Run a server until it is told to stop: SIGTERM and Ctrl-C end it, SIGHUP opens changed files."""

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import uvicorn

from micronet_lm.errors import MicronetError
from micronet_lm.files import locked
from micronet_lm.runtime.engines import Name
from micronet_lm.serve.app import make_app
from micronet_lm.serve.logs import Forwarding, Log
from micronet_lm.serve.service import Service
from micronet_lm.serve.settings import Settings
from micronet_lm.serve.shelf import Shelf

SWITCH = 1e-4
"""Seconds after which a thread hands Python's global lock on.

A worker gives it up at each call of the engine; with the usual 5 ms it would wait that long each
time until a busy event loop gives it back."""


class _Server(uvicorn.Server):
    """uvicorn's server, but the signal that ended it is not raised again."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGTERM and SIGINT; a second one does not wait for open requests."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)


class ServeError(MicronetError):
    """A server that cannot start."""


def run_server(
    places: Mapping[str, Path],
    engine: Name,
    settings: Settings,
    ready: Callable[[str, Shelf], None],
) -> None:
    """Serve models until the process is told to stop; `ready` is called with the address."""
    sys.setswitchinterval(SWITCH)
    log = Log(sys.stderr, texts=settings.log_texts)
    with ExitStack() as stack:
        listening = stack.enter_context(_bound(settings))
        shelf = Shelf(places, engine)
        if settings.sessions is not None:
            try:
                stack.enter_context(locked(settings.sessions))
            except BlockingIOError:
                raise ServeError(
                    f"another server keeps its sessions in {settings.sessions}: choose another "
                    "folder with --sessions"
                ) from None
        service = Service(shelf, settings, log)
        logging.getLogger("uvicorn").addHandler(Forwarding(log))
        config = _configured(service)
        # What is there now stays: it is not looked through again for what can be given back.
        gc.collect()
        gc.freeze()
        stack.callback(gc.unfreeze)
        # asyncio.run would take Python's own loop, which is half as fast as uvicorn's choice.
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            said = partial(ready, _address(listening), shelf)
            runner.run(_serve(service, config, listening, said))


def _configured(service: Service) -> uvicorn.Config:
    limits = service.settings.limits
    return uvicorn.Config(
        make_app(service),
        access_log=False,
        log_config=None,
        lifespan="on",
        proxy_headers=False,  # nothing here asks who the client is
        server_header=False,
        ws_max_size=limits.body,
        ws_max_queue=8,
        ws_per_message_deflate=False,  # messages are short, and time matters
        h11_max_incomplete_event_size=1 << 16,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
        backlog=1024,
    )


async def _serve(
    service: Service, config: uvicorn.Config, listening: socket.socket, ready: Callable[[], None]
) -> None:
    server = _Server(config)
    loop = asyncio.get_running_loop()
    reopening: set[asyncio.Task[None]] = set()

    def reopen() -> None:
        task = loop.create_task(service.reopen())
        reopening.add(task)
        task.add_done_callback(reopening.discard)

    async def tell_when_started() -> None:
        while not server.started:
            await asyncio.sleep(0.01)
        ready()

    loop.add_signal_handler(signal.SIGHUP, reopen)
    telling = asyncio.create_task(tell_when_started())
    try:
        await server.serve(sockets=[listening])
    finally:
        telling.cancel()
        loop.remove_signal_handler(signal.SIGHUP)


def _bound(settings: Settings) -> socket.socket:
    """Return a socket at the address; port 0 takes a free one."""
    try:
        # With the protocol named, asyncio sends without waiting for acknowledgements (40 ms less).
        family, kind, protocol, _, place = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as stack:
            listening = stack.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
            stack.pop_all()
    except OSError as error:
        raise ServeError(
            f"cannot listen at {settings.host} port {settings.port} ({error.strerror or error}): "
            "choose another with --host and --port"
        ) from None
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
