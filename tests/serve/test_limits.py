"""Who may come in and how much they may ask for: each refusal is a status and one sentence."""

import json
import socket
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from tests.support.servers import Reply, Server, serving
from tests.support.waiting import PATIENCE, working

import micronet_lm as mn
from micronet_lm.serve.settings import Limits

PRIVATE = "Return a secret"
KEY = {"authorization": "Bearer open-sesame"}


@pytest.fixture(scope="module")
def narrow() -> Iterator[Server]:
    """A server with a key, one thread and no queue, whose log has texts."""
    words = ["--api-key", "open-sesame", "--allow-host", "words.test"]
    words += ["--allow-origin", "https://friend.test", "--log-texts"]
    with serving("demo", *words, "--threads", "1", "--max-waiting", "0") as running:
        yield running


def test_a_large_body_is_refused_whether_it_says_so_or_not(server: Server) -> None:
    address = urlsplit(server.url)
    head = b"POST /v1/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=60) as raw:
        # Only the head is sent: a client that is still sending may not see the answer.
        raw.sendall(head + b"Content-Length: 1048577\r\n\r\n")
        answer = raw.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"too_large" in answer
    with socket.create_connection((address.hostname, address.port), timeout=60) as raw:
        raw.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(32):  # as much as is allowed
            raw.sendall(b"8000\r\n" + b" " * 0x8000 + b"\r\n")
        raw.sendall(b"1\r\n \r\n")
        assert raw.makefile("rb").read().startswith(b"HTTP/1.1 413")


def test_long_prompts_are_refused(server: Server) -> None:
    long = "a " * 17_000
    for path, body in {
        "/v1/next": {"text": long},
        "/v1/suggest": {"text": long},
        "/v1/explain": {"text": long},
        "/v1/score": {"texts": [long]},
        "/v1/completions": {"prompt": long},
        "/v1/sessions": {"text": long},
        "/detokenize": {"tokens": [1] * 17_000},
    }.items():
        reply = server.post(path, body)
        assert reply.status == 413, path
        assert "17,000 tokens to read: at most 16,384" in reply.sentence, path


def test_wrong_bodies_are_refused_with_a_sentence(server: Server) -> None:
    for body in (b"", b"{", b"[]", b"null", b'{"text": NaN}', b"\xff", b"[" * 100_000):
        reply = server.send("POST", "/v1/next", body)
        assert reply.status == 400, body[:10]
        assert reply.sentence
    assert server.get("/v1/next").status == 405
    assert server.get("/nothing").status == 404
    # Pages of other sites may send plain text without asking first; that is not taken for JSON.
    plain = server.send("POST", "/v1/next", b'{"text": "a"}', content_type="text/plain")
    assert plain.status == 400
    bare = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
    bare.request("POST", "/v1/next", b'{"text": "a"}')  # nor is a body that says nothing of itself
    assert bare.getresponse().status == 400
    bare.close()


def test_head_is_answered_as_get_without_the_body(server: Server) -> None:
    """As load balancers and `curl -I` ask."""
    for path in ("/", "/health", "/v1/models"):
        head, get = server.send("HEAD", path, None), server.get(path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-length"] == get.headers["content-length"]
    assert server.send("HEAD", "/v1/next", None).status == 405
    server.wait_for_log("request", '"HEAD", "route": "/health", "status": 200')


def test_host_names_of_others_are_refused(server: Server) -> None:
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect
    from websockets.typing import Origin

    for name, status in {
        "localhost": 200,
        "[::1]:80": 200,
        "10.1.2.3": 200,
        "evil.com": 421,
    }.items():
        assert server.get("/health", host=name).status == status, name
    with pytest.raises(WebSocketException):
        connect(server.url.replace("http", "ws") + "/v1/type", origin=Origin("http://evil.com"))


def test_the_page_may_load_nothing_from_elsewhere(server: Server) -> None:
    reply = server.get("/", origin="http://evil.com")
    assert "default-src 'self'" in reply.headers["content-security-policy"]
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in reply.headers
    assert server.get("/page/..%2fapp.py").status == 404
    assert server.get("/page/app.py").status == 404


def test_a_key_and_other_sites(narrow: Server) -> None:
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect
    from websockets.typing import Subprotocol

    assert narrow.get("/health").status == 200
    assert narrow.get("/").status == 200
    for given in ({}, {"authorization": "Bearer open"}, {"authorization": "open-sesame"}):
        reply = narrow.get("/v1/models", **given)
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
        assert narrow.post("/v1/next", {"text": "a"}, **given).status == 401
    assert narrow.get("/v1/models", **KEY).status == 200
    assert narrow.get("/v1/models", host="words.test", **KEY).status == 200
    friend = narrow.get("/v1/models", origin="https://friend.test", **KEY)
    assert friend.headers["access-control-allow-origin"] == "https://friend.test"
    stranger = narrow.get("/v1/models", origin="https://stranger.test", **KEY)
    assert "access-control-allow-origin" not in stranger.headers
    ask = {"access_control_request_method": "POST"}
    ask["access_control_request_headers"] = "authorization,content-type"
    for origin, status in (("https://friend.test", 200), ("https://stranger.test", 400)):
        asked_first = narrow.send("OPTIONS", "/v1/next", None, origin=origin, **ask)
        assert asked_first.status == status
    socket_url = narrow.url.replace("http", "ws") + "/v1/type"
    with pytest.raises(WebSocketException):
        connect(socket_url)
    spelled = "key." + urlsafe_b64encode(b"open-sesame").decode().rstrip("=")
    ways = [Subprotocol("micronet"), Subprotocol(spelled)]
    with connect(socket_url, subprotocols=ways) as typing:
        typing.send('{"id": 1, "text": "Return a"}')
        assert json.loads(typing.recv(PATIENCE))["id"] == 1
    assert "open-sesame" not in narrow.output


def test_logs_have_texts_only_if_asked_for(server: Server, narrow: Server) -> None:
    server.ask("/v1/next", text=PRIVATE)
    name = server.ask("/v1/sessions", text=PRIVATE)["id"]
    server.get(f"/v1/sessions/{name}")
    assert PRIVATE not in server.output
    assert name not in server.output
    server.wait_for_log("request", r'"/v1/sessions/\{name\}", "status": 200')
    assert narrow.post("/v1/next", {"text": PRIVATE}, **KEY).status == 200
    line = narrow.wait_for_log("request", '"/v1/next", "status": 200')
    assert json.loads(line["body"])["text"] == PRIVATE


def test_more_than_may_wait_are_told_to_come_again(narrow: Server) -> None:
    replies: list[Reply] = []
    slow = {"prompt": "Return", "max_tokens": 1_500}

    def ask() -> None:
        replies.append(narrow.post("/v1/completions", slow, **KEY))

    with working([ask] * 6):
        pass
    assert {reply.status for reply in replies} == {200, 429}
    busy = next(reply for reply in replies if reply.status == 429)
    assert busy.headers["retry-after"] == "1"
    assert "no more may wait" in busy.sentence
    assert 'micronet_refused_total{reason="busy"}' in narrow.get("/metrics", **KEY).body.decode()


def test_requests_end_with_their_time() -> None:
    with serving("demo", "--threads", "1", "--timeout", "0.3") as server:
        slow = server.post("/v1/completions", {"prompt": "Return", "max_tokens": 2_000, "n": 64})
        assert slow.status == 503
        assert "within 0.3 seconds" in slow.sentence
        streamed = server.post(
            "/v1/completions", {"prompt": "Return", "max_tokens": 2_000, "n": 64, "stream": True}
        )
        last = [line for line in streamed.body.decode().split("\n\n") if line][-1]
        assert "within 0.3 seconds" in json.loads(last.removeprefix("data: "))["error"]["message"]
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), timeout=60) as raw:
            raw.sendall(b"POST /v1/next HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
            assert raw.recv(1 << 16).startswith(b"HTTP/1.1 408")


def test_keystrokes(server: Server, lm: mn.LM) -> None:
    from websockets.sync.client import connect

    with connect(server.url.replace("http", "ws") + "/v1/type?model=demo") as typing:

        def told(message: str) -> dict[str, object]:
            typing.send(message)
            answer: dict[str, object] = json.loads(typing.recv(PATIENCE))
            return answer

        text = "Return a new dictionary of 🎉 the"
        for end in range(len(text) + 1):
            answer = told(
                json.dumps({"id": end, "keep": end - 1 if end else 0, "text": text[:end][-1:]})
            )
            words = [(word["word"], word["probability"]) for word in answer["words"]]  # type: ignore[attr-defined]
            assert words == lm.suggest(text[:end], 3), text[:end]
        back = told('{"id": 99, "keep": 12, "text": ""}')
        words = [(word["word"], word["probability"]) for word in back["words"]]  # type: ignore[attr-defined]
        assert (back["id"], words) == (99, lm.suggest(text[:12], 3))
        for wrong in ("{", '{"k": 0}', '{"unheard": 1}', "[]"):
            assert told(wrong)["error"]
        assert told('{"id": 5}')["id"] == 5  # it goes on after that


def test_a_socket_that_is_refused_is_told_why(server: Server) -> None:
    """The reason comes in the closing frame, which browsers show to a page."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    url = server.url.replace("http", "ws") + "/v1/type"

    def closed(place: str) -> tuple[int, str]:
        with connect(place) as typing, pytest.raises(ConnectionClosed) as caught:
            typing.recv(PATIENCE)
        assert caught.value.rcvd
        return caught.value.rcvd.code, caught.value.rcvd.reason

    assert closed(f"{url}?model=other") == (
        1008,
        "there is no model 'other' here: choose one of demo",
    )
    code, reason = closed(f"{url}?model={'%C3%A9' * 200}")
    assert code == 1008
    assert 100 < len(reason.encode()) <= 123
    with ExitStack() as stack:
        for _ in range(Limits().sockets):
            stack.enter_context(connect(url))
        assert closed(url) == (1013, "64 WebSockets are open already: try again later")
