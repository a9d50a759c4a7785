"""Fetching from real servers on this machine that behave well, badly, and not at all."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from micronet_lm.corpus.download import fetch
from micronet_lm.errors import DownloadError

DATA = bytes(range(256)) * 4000  # a megabyte


class Server(ThreadingHTTPServer):
    """Serves DATA; its attributes say how it misbehaves."""

    daemon_threads = True
    ranges = True  # honour Range
    drop_after: int | None = None  # bytes after which the connection is cut
    drops = 0  # how often it is cut
    status = 200  # what to answer instead

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []
        self.address = f"http://127.0.0.1:{self.server_address[1]}/corpus.zip"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        wanted = self.headers["Range"]
        server.asked.append(wanted)
        if server.status != 200:
            self.send_error(server.status)
            return
        start = int(re.findall(r"\d+", wanted)[0]) if wanted and server.ranges else 0
        if start >= len(DATA):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(DATA)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = DATA[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(DATA) - 1}/{len(DATA)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.drops and server.drop_after is not None:
            server.drops -= 1
            body = body[: server.drop_after]
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
        pass


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "corpus.zip"
    assert fetch(server.address, target) == target
    assert target.read_bytes() == DATA
    fetch(server.address, target)
    assert server.asked == [None]
    assert [path.name for path in target.parent.iterdir()] == ["corpus.zip"]


def test_a_dropped_connection_is_continued(server: Server, tmp_path: Path) -> None:
    server.drop_after, server.drops = 300_000, 2
    fetch(server.address, tmp_path / "c", pause=0)
    assert (tmp_path / "c").read_bytes() == DATA
    assert server.asked == [None, "bytes=300000-", "bytes=600000-"]


def test_progress_starts_the_count_of_attempts_anew(server: Server, tmp_path: Path) -> None:
    server.drop_after, server.drops = 50_000, 10
    fetch(server.address, tmp_path / "c", pause=0, attempts=2)
    assert (tmp_path / "c").read_bytes() == DATA
    assert len(server.asked) == 11


def test_an_interrupted_program_is_continued(server: Server, tmp_path: Path) -> None:
    (tmp_path / "c.part").write_bytes(DATA[:1000])
    fetch(server.address, tmp_path / "c")
    assert server.asked == ["bytes=1000-"]
    assert (tmp_path / "c").read_bytes() == DATA


def test_a_server_that_ignores_ranges_starts_again(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    server.drop_after, server.drops = 300_000, 1
    (tmp_path / "c.part").write_bytes(b"something else")
    fetch(server.address, tmp_path / "c", pause=0)
    assert (tmp_path / "c").read_bytes() == DATA
    assert len(server.asked) == 2


def test_a_complete_part_is_only_renamed(server: Server, tmp_path: Path) -> None:
    (tmp_path / "c.part").write_bytes(DATA)
    fetch(server.address, tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == DATA
    assert server.asked == [f"bytes={len(DATA)}-"]


def test_a_part_that_is_too_long_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "c.part").write_bytes(DATA + b"more")
    fetch(server.address, tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == DATA
    assert server.asked == [f"bytes={len(DATA) + 4}-", None]


def test_a_wrong_address_is_not_tried_again(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(DownloadError, match=rf"{server.address} \(.*404 Not Found\).*--from"):
        fetch(server.address, tmp_path / "c")
    assert len(server.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_server_in_trouble_is_tried_again(server: Server, tmp_path: Path) -> None:
    server.status = 503
    with pytest.raises(DownloadError, match="503"):
        fetch(server.address, tmp_path / "c", attempts=3, pause=0)
    assert len(server.asked) == 3


def test_what_came_stays_for_the_next_time(server: Server, tmp_path: Path) -> None:
    server.drop_after, server.drops = 70_000, 1
    with pytest.raises(DownloadError, match="ended at byte 70000 of 1024000"):
        fetch(server.address, tmp_path / "c", attempts=1)
    assert not (tmp_path / "c").exists()
    fetch(server.address, tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == DATA


def test_no_network(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/corpus.zip"
        with pytest.raises(DownloadError, match=rf"cannot download {address} .*--from"):
            fetch(address, tmp_path / "c", attempts=2, pause=0)


def test_a_silent_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/corpus.zip"
        with pytest.raises(DownloadError, match="timed out"):
            fetch(address, tmp_path / "c", attempts=1, timeout=0.05)
