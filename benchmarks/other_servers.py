"""Small servers that `micronet serve` is compared with: HTTP with a model, and without one."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

OTHERS = {
    # The same framework, and no model: what FastAPI, uvicorn and JSON cost.
    "bare_fastapi": """
import sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
app = FastAPI()
class Q(BaseModel):
    text: str
    k: int = 3
@app.post("/v1/suggest")
async def suggest(q: Q) -> dict[str, str]:
    return {"model": "none"}
uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="error")
""",
    # The same engine behind Python's own server, one thread for each connection: no limits, no
    # queue, no checks, no metrics.
    "http_server": """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import micronet_lm as mn
lm = mn.load("demo")
class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        words = [{"word": w, "probability": p} for w, p in lm.suggest(asked["text"], asked["k"])]
        data = json.dumps({"model": "demo", "words": words}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def log_message(self, *_):
        pass
class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True
Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
""",
}

Ask = Callable[[str, Any], Awaitable[tuple[int, bytes]]]
"""Sends a path and a body over a connection of its own."""


async def suggestions(
    connect: Callable[[str], Ask], url: str, clients: int, texts: list[str], requests: int
) -> tuple[list[float], list[str], float]:
    """Ask for suggestions only; return the seconds of each answer, the errors, and all seconds."""
    seconds: list[float] = []
    errors: list[str] = []
    left = iter(range(requests))

    async def one() -> None:
        ask = connect(url)
        for number in left:
            began = time.perf_counter()
            text = texts[number % len(texts)]
            status, reply = await ask("/v1/suggest", {"text": text, "k": 3})
            seconds.append(time.perf_counter() - began)
            errors.extend([] if status == 200 else [f"{status} {reply[:100]!r}"])

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    return seconds, errors, time.perf_counter() - began


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process, which does not count what others use."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Other:
    """One of the small servers, while it runs."""

    def __init__(self, name: str) -> None:
        port = 18_000 + (os.getpid() * 7 + len(name)) % 4_000
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen([sys.executable, "-c", OTHERS[name], str(port)])

    async def __aenter__(self) -> "Other":
        """Wait until it listens."""
        port = int(self.url.rpartition(":")[2])
        for _ in range(2_400):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return self
            except OSError:
                await asyncio.sleep(0.05)
        raise TimeoutError(self.url)

    async def __aexit__(self, *_: object) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
