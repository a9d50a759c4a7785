"""Fetching from real servers on this machine that behave well, badly, and not at all."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from micronet_lm.corpus.download import Budget, fetch
from micronet_lm.errors import DownloadError

DATA = bytes(range(256)) * 4000  # a megabyte


class Server(ThreadingHTTPServer):
    """Serves DATA; its attributes say how it misbehaves."""

    daemon_threads = True
    ranges = True  # honour Range
    drop_after: int | None = None  # bytes after which the connection is cut
    drops = 0  # how often it is cut
    status = 200  # what to answer instead
    tag: str | None = None  # version of the file
    endless = False  # no length, and no end
    drip = False  # a byte now and then

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []
        self.versions: list[str | None] = []
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
        server.versions.append(version := self.headers["If-Range"])
        if version is not None and version != server.tag:
            wanted = None
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
        if server.tag:
            self.send_header("ETag", server.tag)
        if not server.endless:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        while server.drip or server.endless:
            try:
                self.wfile.write(b"x" if server.drip else DATA)
                time.sleep(0.02 if server.drip else 0)
            except OSError:
                return
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


def test_another_version_of_the_file_is_not_appended(server: Server, tmp_path: Path) -> None:
    """Half of the old file and half of the new one were put together."""
    target, part = tmp_path / "corpus.zip", tmp_path / "corpus.zip.part"
    server.tag = '"first"'
    server.drop_after, server.drops = 1000, 1
    with pytest.raises(DownloadError):
        fetch(server.address, target, attempts=1)
    assert part.stat().st_size == 1000
    part.write_bytes(b"x" * 1000)  # as if the first version had other bytes
    server.tag = '"second"'
    fetch(server.address, target)
    assert target.read_bytes() == DATA
    assert server.versions == [None, '"first"']
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.zip"]


def test_the_same_version_is_resumed(server: Server, tmp_path: Path) -> None:
    server.tag = '"first"'
    server.drop_after, server.drops = 1000, 1
    fetch(server.address, tmp_path / "corpus.zip", pause=0.01)
    assert server.asked == [None, "bytes=1000-"]
    assert (tmp_path / "corpus.zip").read_bytes() == DATA


def test_a_file_beyond_its_size_is_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="more than the 5,000 bytes that are allowed"):
        fetch(server.address, tmp_path / "corpus.zip", budget=Budget(bytes=5000))
    server.endless = True
    with pytest.raises(DownloadError, match="more than the 5,000 bytes that are allowed"):
        fetch(server.address, tmp_path / "corpus.zip", budget=Budget(bytes=5000))
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_drips_is_given_up(server: Server, tmp_path: Path) -> None:
    """A byte now and then kept a connection open for ever."""
    server.drip = True
    slow = Budget(slowest=1e6, patience=0.2)
    with pytest.raises(DownloadError, match="fewer than 1,000,000 bytes per second"):
        fetch(server.address, tmp_path / "corpus.zip", attempts=1, budget=slow)
    short = Budget(seconds=0.3)
    with pytest.raises(DownloadError, match="seconds have passed"):
        fetch(server.address, tmp_path / "corpus.zip", attempts=1, budget=short)


def test_a_part_that_is_a_link_is_not_written_through(server: Server, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("")
    (tmp_path / "corpus.zip.part").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic link"):
        fetch(server.address, tmp_path / "corpus.zip", attempts=1)
    assert precious.read_text() == ""
