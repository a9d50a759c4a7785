"""`POST /v1/completions` and its company: OpenAI's shape, with the Python API's numbers."""

import json
import urllib.request
from typing import Any

import pytest
from tests.support.servers import Server, serving
from tests.support.waiting import PATIENCE, wait_until

import micronet_lm as mn

PROMPT = "Return a new"


def complete(server: Server, **body: Any) -> Any:
    return server.ask("/v1/completions", **body)


def test_a_completion_is_what_the_python_api_writes(server: Server, lm: mn.LM) -> None:
    ways: list[dict[str, Any]] = [
        {"temperature": 0.0},
        {"temperature": 0.7, "seed": 5},
        {"temperature": 1.0, "seed": 3, "top_p": 0.5},
        {"temperature": 1.5, "seed": 3, "top_k": 4},
    ]
    for way in ways:
        answer = complete(server, prompt=PROMPT, max_tokens=9, **way)
        (choice,) = answer["choices"]
        assert choice["text"] == "".join(lm.generate(PROMPT, 9, **way))
        assert choice["finish_reason"] == "length"
        assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}
    assert answer["object"] == "text_completion"
    assert answer["model"] == "demo"


def test_prompts_come_as_text_ids_or_lists_of_either(server: Server, lm: mn.LM) -> None:
    ids = lm.encoder.ids(PROMPT).tolist()
    other = lm.encoder.ids("Raise an").tolist()

    def texts(prompt: Any, **more: Any) -> list[str]:
        answer = complete(server, prompt=prompt, max_tokens=4, temperature=0, **more)
        assert [choice["index"] for choice in answer["choices"]] == [*range(len(answer["choices"]))]
        return [choice["text"] for choice in answer["choices"]]

    one, two = texts(PROMPT), texts("Raise an")
    assert texts(ids) == one
    assert texts([PROMPT, "Raise an"]) == texts([ids, other]) == one + two
    assert texts([PROMPT, "Raise an"], n=2) == one * 2 + two * 2
    assert len(texts("")) == 1
    drawn = complete(server, prompt=PROMPT, n=3, max_tokens=8, seed=1)["choices"]
    assert len({choice["text"] for choice in drawn}) == 3  # each has a seed of its own
    again = complete(server, prompt=PROMPT, n=3, max_tokens=8, seed=1)["choices"]
    assert again == drawn


def test_logprobs_have_openais_shape(server: Server, lm: mn.LM) -> None:
    text = "Return a new list.\nReturn xyzzy"
    answer = complete(server, prompt=text, max_tokens=2, temperature=0, echo=True, logprobs=2)
    (choice,) = answer["choices"]
    found = choice["logprobs"]
    assert choice["text"].startswith(text)
    assert "".join(found["tokens"]) == choice["text"]
    assert found["token_logprobs"][0] is None
    assert found["top_logprobs"][0] is None
    scored = [score for _, score in lm.score(text)]
    assert found["token_logprobs"][1:-2] == pytest.approx(scored, abs=1e-4)
    for place, token in zip(found["text_offset"], found["tokens"], strict=True):
        assert choice["text"][place : place + len(token)] == token
    assert all(len(top) == 2 for top in found["top_logprobs"][1:])
    written, best = found["token_logprobs"][-1], found["top_logprobs"][-1]
    assert written == max(best.values())  # the likeliest was taken, and is recognized

    bare = complete(server, prompt=text, max_tokens=0, echo=True, logprobs=0)["choices"][0]
    assert bare["text"] == text
    assert bare["logprobs"]["top_logprobs"] is None
    assert bare["logprobs"]["token_logprobs"][1:] == pytest.approx(scored, abs=1e-4)
    assert complete(server, prompt=text, max_tokens=3)["choices"][0]["logprobs"] is None


def test_text_ends_before_a_stop_string(server: Server) -> None:
    whole = complete(server, prompt=PROMPT, max_tokens=8, temperature=0, logprobs=1)["choices"][0]
    word = whole["logprobs"]["tokens"][3].strip()
    for stop in (word, ["never seen", word]):
        answer = complete(server, prompt=PROMPT, max_tokens=8, temperature=0, logprobs=1, stop=stop)
        (choice,) = answer["choices"]
        assert choice["text"] == whole["text"].partition(word)[0]
        assert choice["finish_reason"] == "stop"
        assert all(place < len(choice["text"]) for place in choice["logprobs"]["text_offset"])


def test_a_stream_has_the_same_text(server: Server) -> None:
    body: dict[str, Any] = {"prompt": [PROMPT, "Raise"], "max_tokens": 7, "seed": 2, "n": 2}
    for more in ({"logprobs": 1}, {"stop": ["."]}, {"echo": True}):
        whole = complete(server, **body, **more)
        events = streamed(server, {**body, **more, "stream_options": {"include_usage": True}})
        texts: dict[int, str] = {}
        finished: dict[int, str] = {}
        tokens: dict[int, list[str]] = {}
        for event in events[:-1]:
            (choice,) = event["choices"]
            index = choice["index"]
            texts[index] = texts.get(index, "") + choice["text"]
            if choice["finish_reason"]:
                finished[index] = choice["finish_reason"]
            if choice["logprobs"]:
                tokens.setdefault(index, []).extend(choice["logprobs"]["tokens"])
        assert [texts[n] for n in range(4)] == [choice["text"] for choice in whole["choices"]]
        assert [finished[n] for n in range(4)] == [
            choice["finish_reason"] for choice in whole["choices"]
        ]
        assert events[-1]["usage"] == whole["usage"]
        if "logprobs" in more:
            assert [tokens[n] for n in range(4)] == [
                choice["logprobs"]["tokens"] for choice in whole["choices"]
            ]


def streamed(server: Server, body: dict[str, Any]) -> list[Any]:
    reply = server.post("/v1/completions", {**body, "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in reply.body.decode().split("\n\n") if line]
    assert lines.pop() == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_a_stream_comes_while_it_is_written_and_ends_with_its_client() -> None:
    """With one thread, which others would wait for until 256,000 words are written."""
    body = {"prompt": "Return", "max_tokens": 2_000, "n": 128, "stream": True}
    with serving("demo", "--threads", "1", "--timeout", "3600") as server:
        request = urllib.request.Request(  # noqa: S310
            f"{server.url}/v1/completions",
            data=json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )

        def in_hand() -> bool:
            return "micronet_requests_in_hand 1" in server.get("/metrics").body.decode()

        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:  # noqa: S310
            assert reply.readline().startswith(b'data: {"id":"cmpl-')
            assert in_hand()
        wait_until(lambda: not in_hand(), "the end of what nobody reads")
        assert server.ask("/v1/next", text="Return a")["words"]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"model": "gpt-4"}, 404, "there is no model 'gpt-4' here: choose one of demo"),
        ({"prompt": [7137]}, 400, "token 7137 is out of range"),
        ({"prompt": [[]]}, 400, "empty list of ids"),
        ({"prompt": []}, 413, "0 prompts"),
        ({"prompt": [2**70]}, 400, "ids must be from 0 to 7136"),
        ({"prompt": {"a": 1}}, 400, "prompt must be a text, a list of texts, a list of ids, or"),
        ({"prompt": None}, 400, "prompt must be a text, a list of texts, a list of ids, or"),
        ({"prompt": [1, "a"]}, 400, "prompt must be a text, a list of texts, a list of ids, or"),
        ({"stop": 5}, 400, "stop must be a text or a list of texts"),
        ({"max_tokens": 1e9}, 400, "max_tokens"),
        ({"max_tokens": 10_000}, 413, "max_tokens must be at most 2,048"),
        ({"temperature": -1}, 400, "temperature must be greater than or equal to 0"),
        ({"stop": ""}, 400, "one character or more"),
        ({"n": 1000}, 400, "n must be"),
        ({"suffix": "."}, 400, "suffix is not supported here"),
        ({"best_of": 4}, 400, "best_of is not supported here"),
        ({"unheard_of": 1}, 400, "unheard_of is not a key here"),
        ({"prompt": "\ud800"}, 400, "prompt"),
    ],
)
def test_what_cannot_be_done_is_said(
    body: dict[str, Any], status: int, sentence: str, server: Server
) -> None:
    reply = server.post("/v1/completions", body)
    assert reply.status == status
    assert sentence in reply.sentence
    assert "\n" not in reply.sentence
    assert reply.json["error"]["type"] == "invalid_request_error"


def test_models_and_tokens(server: Server, lm: mn.LM) -> None:
    (model,) = server.get("/v1/models").json["data"]
    assert (model["id"], model["object"]) == ("demo", "model")
    assert server.get("/v1/models/demo").json == model
    assert server.get("/v1/models/other").status == 404
    info = server.get("/tokenizer_info").json
    text = "Return a new list.\nReturn f(x)"
    tokens = server.ask("/tokenize", prompt=text, return_token_strs=True)
    assert tokens["tokens"] == lm.encoder.ids(text).tolist()
    assert tokens["count"] == len(tokens["token_strs"])
    assert server.ask("/detokenize", tokens=tokens["tokens"])["prompt"] == text
    end = info["eos_token"]
    assert server.ask("/tokenize", prompt=end)["tokens"] == [lm.encoder.line_end]
    assert server.post("/detokenize", {"tokens": [-1]}).status == 400
