"""Firefox driven by WebDriver BiDi, which it speaks itself: no other program is needed."""

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
SECONDS = 60
# No network: names have no addresses, and everything but a file goes to a proxy that is not there.
OFFLINE = {
    "network.dns.disabled": True,
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.no_proxies_on": "",
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
}


class Tab:
    """A page of Firefox; what it asked for and complained of is kept."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._number = socket, 0
        self.asked: list[str] = []
        self.problems: list[str] = []
        self.call("session.new", capabilities={})
        events = ["network.beforeRequestSent", "log.entryAdded"]
        self.call("session.subscribe", events=events)
        self._context = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def call(self, method: str, **values: Any) -> Any:
        """Send a command; return its result."""
        self._number += 1
        number = self._number
        self._socket.send(json.dumps({"id": number, "method": method, "params": values}))
        while True:
            answer = json.loads(self._socket.recv(timeout=SECONDS))
            if answer.get("id") == number:
                assert answer["type"] == "success", answer
                return answer["result"]
            self._event(answer)

    def open(self, address: str) -> None:
        """Go to an address."""
        self.call("browsingContext.navigate", context=self._context, url=address, wait="complete")

    def value(self, script: str) -> Any:
        """Return what a script gives: a string, a number or a truth value."""
        result = self.call(
            "script.evaluate",
            expression=script,
            target={"context": self._context},
            awaitPromise=True,
        )
        assert result["type"] == "success", result
        return result["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until a script gives something true."""
        end = time.monotonic() + SECONDS
        while not self.value(script):
            assert time.monotonic() < end, f"Firefox: {script} did not become true"
            time.sleep(0.05)

    def press(self, keys: str) -> None:
        """Press keys, one after the other."""
        actions = [{"type": way, "value": key} for key in keys for way in ("keyDown", "keyUp")]
        self.call(
            "input.performActions",
            context=self._context,
            actions=[{"type": "key", "id": "keyboard", "actions": actions}],
        )

    def picture(self) -> bytes:
        """Return a picture of the page as PNG."""
        made = self.call("browsingContext.captureScreenshot", context=self._context)
        return base64.b64decode(made["data"])

    def _event(self, event: dict[str, Any]) -> None:
        if event.get("method") == "network.beforeRequestSent":
            self.asked.append(event["params"]["request"]["url"][:60])
        elif event.get("method") == "log.entryAdded" and event["params"]["level"] == "error":
            self.problems.append(str(event["params"]["text"]))


@contextmanager
def firefox(profile: Path) -> Iterator[Tab]:
    """Start Firefox with an empty profile and without a network; end it."""
    from websockets.sync.client import connect

    assert FIREFOX
    profile.mkdir()
    settings = (f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in OFFLINE.items())
    (profile / "user.js").write_text("".join(settings), encoding="utf-8")
    said = profile / "said.txt"
    command = [FIREFOX, "--headless", "--no-remote", "--remote-debugging-port=0"]
    with said.open("wb") as log:
        process = subprocess.Popen(
            [*command, "--profile", str(profile), "about:blank"], stdout=log, stderr=log
        )
    try:
        address = _address(said, process)
        with connect(
            f"{address}/session", max_size=None, open_timeout=SECONDS, proxy=None
        ) as socket:
            yield Tab(socket)
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=30)


def _address(said: Path, process: "subprocess.Popen[bytes]") -> str:
    """Wait until Firefox says where it listens."""
    mark, end = "WebDriver BiDi listening on ", time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        for line in said.read_text(encoding="utf-8", errors="replace").splitlines():
            if mark in line:
                return line.partition(mark)[2].strip()
        time.sleep(0.1)
    raise AssertionError(f"Firefox did not start: {said.read_text(errors='replace')[-500:]}")
