"""Load a server with many clients at once: errors, wrong answers, memory, speed and latency.

Every answer is compared with the Python API's. Beside the server the same questions are asked in a
plain loop. Suggestions alone are also asked of two other servers: a bare FastAPI application that
answers a constant, and Python's own http.server over the same engine (other_servers.py). At the
end the server is killed with SIGKILL under load, and its saved sessions are asked again.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import micronet_lm as mn
from other_servers import OTHERS, Other, processor_seconds, suggestions

TEXTS = [
    f"{begin} {middle} {end}"
    for begin in ("Return a new", "If the", "Raise a", "The following", "This is the", "Changed in")
    for middle in ("list of", "value is", "file that", "object of the", "string", "module for")
    for end in ("the", "a", "items", "", "given va", "it, and")
]


class Client:
    """One connection that is kept open."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._host, self._port = place.hostname, place.port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, body: Any = None, method: str = "POST") -> tuple[int, bytes]:
        """Send a request; return the answer's status and body."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        writer.write(
            f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"content-length: {len(content)}\r\n\r\n".encode()
            + content
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = re.search(r"content-length: (\d+)", head)
        return int(head.split()[1]), await reader.readexactly(int(length[1]) if length else 0)


@dataclass
class Tally:
    """What came of many requests."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    wrong: int = 0
    elapsed: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return requests per second and percentiles of the latency in milliseconds."""
        ms = 1000 * np.percentile(self.seconds, [50, 90, 99, 99.9, 100])
        names = ("p50", "p90", "p99", "p99.9", "max")
        return {
            "requests": len(self.seconds),
            "errors": len(self.errors),
            "wrong": self.wrong,
            "requests_per_second": len(self.seconds) / self.elapsed,
            "ms": dict(zip(names, ms.round(2).tolist(), strict=True)),
        }


def questions(lm: mn.LM) -> list[tuple[str, Any, Any]]:
    """Return requests with what the Python API answers."""
    found: list[tuple[str, Any, Any]] = []
    for number, text in enumerate(TEXTS):
        words = [list(pair) for pair in lm.suggest(text, 3)]
        found.append(("/v1/suggest", {"text": text, "k": 3}, words))
        if number % 2 == 0:
            words = [list(pair) for pair in lm.top_k(text, 5)]
            found.append(("/v1/next", {"text": text, "k": 5}, words))
        if number % 3 == 0:
            lines = [text, TEXTS[(number * 7) % len(TEXTS)]]
            scores = [line.log_probability for line in lm.score_lines(lines)]
            found.append(("/v1/score", {"texts": lines, "lines": True}, scores))
        if number % 12 == 0:
            body = {"prompt": text, "max_tokens": 8, "temperature": 0.8, "seed": number}
            written = "".join(lm.generate(text, 8, 0.8, seed=number))
            found.append(("/v1/completions", body, written))
    return found


def loop(lm: mn.LM, path: str, body: Any) -> None:
    """Ask the same in this process."""
    if path == "/v1/suggest":
        lm.suggest(body["text"], body["k"])
    elif path == "/v1/next":
        lm.top_k(body["text"], body["k"])
    elif path == "/v1/score":
        lm.score_lines(body["texts"])
    else:
        list(lm.generate(body["prompt"], 8, 0.8, seed=body["seed"]))


def answer_of(path: str, body: bytes) -> Any:
    """Return the part of an answer that is compared."""
    answer = json.loads(body)
    if path == "/v1/score":
        return [one["log_probability"] for one in answer["scores"]]
    if path == "/v1/completions":
        return answer["choices"][0]["text"]
    return [[word["word"], word["probability"]] for word in answer["words"]]


def is_equal(path: str, found: Any, expected: Any) -> bool:
    """Compare an answer; log-probabilities of a batch may differ by a rounding."""
    if path == "/v1/score":
        return bool(np.allclose(found, expected, rtol=0, atol=1e-4))
    return bool(found == expected)


class Load:
    """Clients that ask until enough was asked."""

    def __init__(self, url: str, clients: int, requests: int, lm: mn.LM) -> None:
        self._url, self._clients, self._left, self._lm = url, clients, requests, lm
        self._questions = questions(lm)
        self.tally = Tally()
        self.memory: list[int] = []
        self._every = max(1, requests // 10)

    async def run(self) -> Tally:
        """Ask all of it: plain questions, and one session for each client."""
        began = time.perf_counter()
        await asyncio.gather(*(self._client(number) for number in range(self._clients)))
        self.tally.elapsed = time.perf_counter() - began
        return self.tally

    async def _client(self, number: int) -> None:
        client, chance = Client(self._url), random.Random(number)  # noqa: S311 - no secret
        while self._left > 0:
            if chance.random() < 0.1:
                await self._session(client, chance)
                continue
            path, body, expected = chance.choice(self._questions)
            if (reply := await self._timed(client, path, body)) is not None:
                self.tally.wrong += not is_equal(path, answer_of(path, reply), expected)

    async def _session(self, client: Client, chance: random.Random) -> None:
        """Read a text of one's own in pieces; its answers must be those of that text alone."""
        text = chance.choice(TEXTS)
        begun = await self._timed(client, "/v1/sessions", {"text": text[:7]})
        if begun is None:
            return
        place = f"/v1/sessions/{json.loads(begun)['id']}"
        await self._timed(client, f"{place}/feed", {"text": text[7:]})
        found = await self._timed(client, f"{place}/ask", {"what": "suggest", "k": 3})
        if found is not None:
            words = [list(pair) for pair in self._lm.suggest(text, 3)]
            self.tally.wrong += answer_of("/v1/suggest", found) != words
        await self._timed(client, place, None, "DELETE")

    async def _timed(
        self, client: Client, path: str, body: Any, method: str = "POST"
    ) -> bytes | None:
        self._left -= 1
        if self._left % self._every == 0:
            self.memory.append(await resident(self._url))
        began = time.perf_counter()
        status, reply = await client.ask(path, body, method)
        self.tally.seconds.append(time.perf_counter() - began)
        if status in {200, 201}:
            return reply
        self.tally.errors.append(f"{status} {reply[:200]!r}")
        return None


async def resident(url: str) -> int:
    """Return the server's memory in bytes."""
    _, text = await Client(url).ask("/metrics", method="GET")
    found = re.search(rb"^process_resident_memory_bytes (\S+)", text, re.MULTILINE)
    return int(float(found[1])) if found else 0


class Server:
    """A process that listens."""

    def __init__(self, folder: Path) -> None:
        self._log = (folder / "log").open("w+")
        words = ["serve", "demo", "--port", "0", "--sessions", str(folder / "sessions")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "micronet_lm", *words], stderr=self._log
        )
        self.url = ""
        while not self.url:
            time.sleep(0.05)
            if self.process.poll() is not None:
                sys.exit("the server did not start: " + (folder / "log").read_text())
            if told := re.search(r"serving at (\S+)", (folder / "log").read_text()):
                self.url = told[1]

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it by a signal."""
        self.process.send_signal(number)
        self.process.wait()
        self._log.close()


async def suggesting(url: str, pid: int, clients: int, requests: int) -> dict[str, Any]:
    """Ask one server for suggestions only, the question that all servers here answer."""
    tally, used = Tally(), processor_seconds(pid)
    found = await suggestions(lambda place: Client(place).ask, url, clients, TEXTS, requests)
    tally.seconds, tally.errors, tally.elapsed = found
    spent = 1000 * (processor_seconds(pid) - used) / requests
    return {**tally.as_json(), "processor_ms": round(spent, 3)}


async def killed(lm: mn.LM, sessions: int) -> dict[str, int]:
    """Kill a server under load; count the sessions that are there after the restart."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = Server(folder)
        client, names = Client(server.url), {}
        for text in TEXTS[:sessions]:
            _, reply = await client.ask("/v1/sessions", {"text": text})
            names[json.loads(reply)["id"]] = text
        while len(list((folder / "sessions").glob("*.session"))) < len(names):
            await asyncio.sleep(0.2)
        load = asyncio.create_task(_until_it_dies(Load(server.url, 16, 10**9, lm).run))
        await asyncio.sleep(2)
        server.end(signal.SIGKILL)
        await load
        server = Server(folder)
        client, right = Client(server.url), 0
        for session, text in names.items():
            _, reply = await client.ask(f"/v1/sessions/{session}/ask", {"what": "suggest"})
            words = [list(pair) for pair in lm.suggest(text, 3)]
            right += answer_of("/v1/suggest", reply) == words
        server.end()
        return {"saved": len(names), "right_after_restart": right}


async def _until_it_dies(run: Callable[[], Awaitable[object]]) -> None:
    try:
        await run()
    except (OSError, EOFError):
        return


async def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    lm = mn.load("demo")
    with tempfile.TemporaryDirectory() as name:
        server = Server(Path(name))
        alone = Load(server.url, 1, max(200, arguments.requests // 50), lm)
        one = (await alone.run()).as_json()
        await Load(server.url, arguments.clients, 2_000, lm).run()  # until memory is warm
        load = Load(server.url, arguments.clients, arguments.requests, lm)
        many = (await load.run()).as_json()
        print(*load.tally.errors[:3], sep="\n", file=sys.stderr)
        memory = [*load.memory, await resident(server.url)]
        few = min(arguments.requests, 10_000)
        clients, own = arguments.clients, server.process.pid
        compared = {"suggestions": await suggesting(server.url, own, clients, few)}
        server.end()
    for name in OTHERS:
        async with Other(name) as other:
            pid = other.process.pid
            compared[name] = await suggesting(other.url, pid, clients, few)
    asked = [(path, body) for path, body, _ in questions(lm)]
    tally, began = Tally(), time.perf_counter()
    for _ in range(max(1, 2_000 // len(asked))):
        for path, body in asked:
            start = time.perf_counter()
            loop(lm, path, body)
            tally.seconds.append(time.perf_counter() - start)
    tally.elapsed = time.perf_counter() - began
    return {
        "clients": arguments.clients,
        "load_average": os.getloadavg()[0],
        "server": many,
        "one_client": one,
        "python_loop": tally.as_json(),
        **compared,
        "memory_mb": [round(size / 1e6, 1) for size in memory],
        "killed": await killed(lm, 40),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report = asyncio.run(measured(arguments))
    if arguments.json:
        print(json.dumps(report, indent=1))
        return
    for name in ("server", "one_client", "python_loop", "suggestions", *OTHERS):
        own = report[name]
        times = ", ".join(f"{key} {value} ms" for key, value in own["ms"].items())
        print(
            f"{name}: {own['requests']:,} requests, {own['errors']} errors, {own['wrong']} wrong, "
            f"{own['requests_per_second']:,.0f} per second; {times}"
            + (f"; processor {own['processor_ms']} ms each" if "processor_ms" in own else "")
        )
    print(f"memory of the server in MB, tenth by tenth: {report['memory_mb']}")
    print(f"killed with SIGKILL under load: {report['killed']}")


if __name__ == "__main__":
    main()
