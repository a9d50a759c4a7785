"""Real servers in processes of their own, and a plain client."""

import json
import re
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.processes import ENVIRONMENT, ONE
from tests.support.waiting import PATIENCE


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def sentence(self) -> str:
        """What was refused."""
        return str(self.json["error"]["message"])


class Server:
    """`micronet serve` in a process, at a free port."""

    def __init__(self, *words: str) -> None:
        self._errors = tempfile.NamedTemporaryFile("w+", suffix=".log", delete=False)  # noqa: SIM115
        self.process = subprocess.Popen(
            [*ONE, "serve", *words],
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env=ENVIRONMENT,
        )
        try:
            self.url = self._wait_for(r"serving at (\S+)")
        except BaseException:
            self.process.kill()
            raise

    @property
    def output(self) -> str:
        """All that it wrote on standard error."""
        return Path(self._errors.name).read_text(encoding="utf-8")

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, None, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        return self.send("POST", path, json.dumps(body).encode(), **headers)

    def ask(self, path: str, **body: Any) -> Any:
        """Post a question that must be answered; return the answer."""
        reply = self.post(path, body)
        assert reply.status in {200, 201}, reply.body
        return reply.json

    def send(self, method: str, path: str, body: bytes | None, **headers: str) -> Reply:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        request = urllib.request.Request(  # noqa: S310
            self.url + path,
            data=body,
            headers={"content-type": "application/json", **named},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:  # noqa: S310
                return Reply(reply.status, dict(reply.headers.items()), reply.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return Reply(refused.code, dict(refused.headers.items()), refused.read())

    def wait_for_log(self, event: str, more: str = "") -> dict[str, Any]:
        """Wait for a line of the log, in which more may be looked for."""
        return json.loads(self._wait_for(rf'(\{{.*"event": "{event}".*{more}.*\}})'))  # type: ignore[no-any-return]

    def stop(self) -> int:
        """End it as a service manager would; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        self._errors.close()
        Path(self._errors.name).unlink()

    def _wait_for(self, pattern: str) -> str:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := re.search(pattern, self.output):
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"the server did not say {pattern!r}:\n{self.output}")


@contextmanager
def serving(*words: str, port: int = 0) -> Iterator[Server]:
    """Run a server for a while, without sessions on disk unless words name a folder."""
    disk = [] if "--sessions" in words else ["--no-sessions-on-disk"]
    server = Server(*words, *disk, "--port", str(port))
    try:
        yield server
    finally:
        server.close()
