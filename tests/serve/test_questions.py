"""The package's own questions over HTTP give the Python API's answers."""

from functools import partial
from typing import Any

import pytest
from tests.support.servers import Server
from tests.support.waiting import working

import micronet_lm as mn


def pairs(answer: Any) -> list[tuple[str, float]]:
    return [(word["word"], word["probability"]) for word in answer["words"]]


def test_words(server: Server, lm: mn.LM) -> None:
    for text in ("Return a ne", "Return a new", "", "The following ", "Return a new dictoin"):
        found, expected = server.ask("/v1/suggest", text=text, k=4), lm.suggest(text, 4)
        assert pairs(found) == expected
        assert found["replaces"] == expected.replaces
        assert pairs(server.ask("/v1/next", text=text, k=3)) == lm.top_k(text, 3)
        special = server.ask("/v1/next", text=text, k=3, special=True)
        assert pairs(special) == lm.top_k(text, 3, special=True)
        found = server.ask("/v1/complete", text=text, prefix="di", k=3)
        assert pairs(found) == lm.complete(text, "di", 3)


def test_scores(server: Server, lm: mn.LM) -> None:
    lines = ["Return the file.", "Return file the.", "", "Return"]
    answer = server.ask("/v1/score", texts=lines, lines=True)
    for found, expected in zip(answer["scores"], lm.score_lines(lines), strict=True):
        assert found["log_probability"] == pytest.approx(expected.log_probability, abs=1e-6)
        assert found["perplexity"] == pytest.approx(expected.perplexity, rel=1e-6)
        assert (found["tokens"], found["unknown"]) == (expected.tokens, expected.unknown)
        assert found["words"] is None
    texts = ["Return the file.\nReturn it.", "Raise a ValueError."]
    answer = server.ask("/v1/score", texts=texts, words=True)
    for found, own in zip(answer["scores"], lm.score_batch(texts), strict=True):
        assert [(word["word"], word["log_probability"]) for word in found["words"]] == list(own)
    assert server.ask("/v1/score", texts=[])["scores"] == []
    for wrong in ({"texts": ["one"]}, {"texts": ["a\nb"], "lines": True}):
        reply = server.post("/v1/score", wrong)
        assert reply.status == 400
        assert "leave" in reply.sentence


def test_requests_that_score_at_once_share_batches(server: Server, lm: mn.LM) -> None:
    def count(name: str) -> float:
        lines = server.get("/metrics").body.decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(name)))

    batches, texts = count("micronet_batches_total"), count("micronet_batched_texts_total")
    long = "Return a new list of the items. " * 300
    wrong: list[object] = []

    def ask(number: int) -> None:
        own = [f"Return the {number}. item of it.", long if number % 8 == 0 else "Raise it."]
        found = server.ask("/v1/score", texts=own)["scores"]
        for one, text in zip(found, own, strict=True):
            if one["log_probability"] != pytest.approx(lm.score(text).log_probability, abs=1e-3):
                wrong.append((number, one))

    with working([partial(ask, number) for number in range(24)]):
        pass
    assert wrong == []
    assert count("micronet_batched_texts_total") - texts == 48
    assert count("micronet_batches_total") - batches < 24


def test_an_explained_text(server: Server, lm: mn.LM) -> None:
    text = "Return a new list. Return a new xyzzy.\nReturn a new list of the items."
    answer = server.ask("/v1/explain", text=text, expected=3, voters=2)
    assert "".join(word["piece"] for word in answer["words"]) == text
    assert answer["perplexity"] == pytest.approx(float(lm.perplexity(text)), rel=1e-5)
    assert (answer["unknown"], answer["tokens"]) == (1, len(answer["words"]) - 1)
    spelled = lm.bits_per_byte(text) if lm.can_spell else None
    assert answer["bits_per_byte"] == pytest.approx(spelled, rel=1e-5)
    known = "Return a new list. Return a new view."
    per_byte = server.ask("/v1/explain", text=known)["bits_per_byte"]
    assert per_byte == pytest.approx(lm.bits_per_byte(known), rel=1e-5)
    helped = answer["words"][-1]
    assert [len(helped["expected"]), len(helped["voters"])] == [3, 2]
    last = max(n for n, word in enumerate(answer["words"]) if word["piece"] == " list")
    for voter in answer["words"][last]["voters"]:
        assert answer["words"][voter["place"]]["piece"]  # the place of an earlier word
        assert voter["place"] < last
    assert server.post("/v1/explain", {"text": "one"}).status == 400


def test_operations(server: Server) -> None:
    assert server.get("/health").json["status"] == "ok"
    card = server.get("/card").json
    assert (
        sum(card["file"][part] for part in ("header", "vocabulary", "weights", "spelling"))
        == (card["file"]["bytes"])
    )
    assert sum(card["parts"].values()) == card["bits"]
    for account in card["accounting"].values():
        for column in ("storage", "operations"):
            layers = sum(layer[column] for layer in account["layers"])
            assert layers == pytest.approx(account[column])
        assert account["score"] == pytest.approx(
            account["storage"] / 159e6 + account["operations"] / 318e6
        )
    assert card["card"]["name"] == "demo/shipped"
    assert server.get("/card?model=other").status == 404
    page = server.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'micronet_requests_total{route="/card",method="GET",status="404"}' in page.body.decode()
    document = server.get("/openapi.json").json
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert "422" not in operation["responses"], path
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                if "$ref" in schema:
                    name = schema["$ref"].rpartition("/")[2]
                    assert document["components"]["schemas"][name]["examples"], name


def test_a_body_that_is_not_sent_as_json_is_told_how(server: Server) -> None:
    """As `curl -d '{...}'` sends it, without a header; and JSON that is not an object."""
    form = "application/x-www-form-urlencoded"
    for reply in (
        server.post("/v1/next", {"text": "Return a new"}, content_type=form),
        server.post("/v1/next", ["Return a new"]),
    ):
        assert reply.status == 400
        assert reply.sentence == (
            "the body must be a JSON object, sent with the header Content-Type: application/json"
        )
