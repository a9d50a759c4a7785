"""Questions that skip the framework's layers are answered and refused as those that do not."""

import json
from typing import Any

import pytest
from tests.support.servers import Reply, Server

QUICK = {"content_type": "application/json"}
SLOW = {"content_type": "application/json; charset=utf-8"}
"""The framework reads this, too, and only it does."""

VALID: list[tuple[str, dict[str, Any]]] = [
    ("/v1/suggest", {"text": "Return a new dictoin", "k": 4}),
    ("/v1/suggest", {"text": "Ἀρχή été \U0001f600 Ret"}),
    ("/v1/next", {"text": "Return a", "k": 7, "model": "demo"}),
    ("/v1/complete", {"text": "Return a", "prefix": "é"}),
    ("/v1/score", {"texts": ["Return the file.", "Xyzzy."], "lines": True, "words": True}),
    ("/v1/explain", {"text": "Return a new list. Return a new view.", "voters": 2}),
    ("/tokenize", {"prompt": "Return a new list.", "return_token_strs": True}),
    ("/detokenize", {"tokens": [3, 4, 5]}),
]
WRONG: list[tuple[str, bytes]] = [
    ("/v1/suggest", b""),
    ("/v1/suggest", b"{"),
    ("/v1/suggest", b'{"text": "a\xff"}'),
    ("/v1/suggest", b'{"text": "\\ud800"}'),
    ("/v1/suggest", b'{"text": "a", "k": "3"}'),
    ("/v1/suggest", b'{"text": "a", "k": 3.5}'),
    ("/v1/suggest", b'{"text": "a", "k": NaN}'),
    ("/v1/suggest", b'{"text": "a", "more": 1}'),
    ("/v1/suggest", b'{"text": "a", "model": "none"}'),
    ("/v1/suggest", b'["a"]'),
    ("/v1/next", b'{"text": "a", "k": 0}'),
    ("/v1/score", b'{"texts": ["one"]}'),
    ("/v1/complete", b'{"text": "a"}'),
    ("/detokenize", b'{"tokens": [999999999]}'),
]


def same(one: Reply, other: Reply) -> None:
    assert (one.status, one.json) == (other.status, other.json)
    assert told(one) == told(other)


def told(reply: Reply) -> dict[str, str]:
    """Return the headers that do not depend on the time or on how numbers are written."""
    headers = {key.lower(): value for key, value in reply.headers.items()}
    return {key: headers[key] for key in headers if key not in {"date", "content-length"}}


@pytest.mark.parametrize(("path", "body"), VALID)
def test_answers_are_the_frameworks(server: Server, path: str, body: dict[str, Any]) -> None:
    quick = server.post(path, body, **QUICK)
    assert quick.status == 200
    same(quick, server.post(path, body, **SLOW))


@pytest.mark.parametrize(("path", "body"), WRONG)
def test_refusals_are_the_frameworks(server: Server, path: str, body: bytes) -> None:
    quick = server.send("POST", path, body, **QUICK)
    assert quick.status in {400, 404}
    same(quick, server.send("POST", path, body, **SLOW))


def test_other_methods_and_kinds_of_content_are_the_frameworks(server: Server) -> None:
    body = json.dumps({"text": "Return a"}).encode()
    assert server.send("PUT", "/v1/suggest", body).status == 405
    assert server.send("POST", "/v1/suggest/", body).status in {404, 405, 307}
    # What a page of another site may send without being asked: it is not taken for JSON.
    assert server.send("POST", "/v1/suggest", body, content_type="text/plain").status == 400


def test_they_are_counted_and_logged_by_their_route(server: Server) -> None:
    def count() -> float:
        wanted = 'micronet_requests_total{route="/v1/next",method="POST",status="200"}'
        lines = server.get("/metrics").body.decode().splitlines()
        return float(next((one.split()[-1] for one in lines if one.startswith(wanted)), 0))

    before = count()
    server.ask("/v1/next", text="Return")
    assert count() == before + 1
    assert server.wait_for_log("request", '"route": "/v1/next"')["method"] == "POST"
