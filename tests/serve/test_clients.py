"""Clients that others wrote, unchanged, against a real server."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import ENVIRONMENT
from tests.support.servers import Server

import micronet_lm as mn

PYTHON = [sys.executable, "-m"]
SAMPLES = ["--log_samples", "--output_path", "out"]
CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance"]
CHECKS += ["response_schema_conformance"]
CHECKED = ["--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--no-color"]
CHECKED += ["--max-examples", "5", "--seed", "1", "--suppress-health-check", "all"]


def test_openai(server: Server, lm: mn.LM) -> None:
    openai = pytest.importorskip("openai", reason="the client openai is not installed")
    client: Any = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == ["demo"]
    assert client.models.retrieve("demo").id == "demo"
    answer = client.completions.create(
        model="demo", prompt="Return a new", max_tokens=8, temperature=0, logprobs=3, echo=True
    )
    (choice,) = answer.choices
    assert choice.text == "Return a new" + "".join(lm.generate("Return a new", 8, 0))
    assert choice.logprobs.tokens[:3] == ["Return", " a", " new"]
    assert choice.logprobs.token_logprobs[0] is None
    assert answer.usage.completion_tokens == 8
    stream = client.completions.create(
        model="demo", prompt="Return a new", max_tokens=8, seed=4, stop=["\n"], stream=True
    )
    text = "".join(event.choices[0].text for event in stream)
    assert text == "".join(lm.generate("Return a new", 8, seed=4, stop=["\n"]))
    with pytest.raises(openai.NotFoundError, match="there is no model"):
        client.completions.create(model="gpt", prompt="a")
    with pytest.raises(openai.BadRequestError, match="temperature must be"):
        client.completions.create(model="demo", prompt="a", temperature=-2)
    client.close()


TASK = """
task: micronet_choice
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{context}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""
DOCUMENTS: list[dict[str, Any]] = [
    {"context": "Return a new", "choices": ["dictionary", "of"], "answer": 0},
    {"context": "If the file does not", "choices": ["exist", "the"], "answer": 0},
    {"context": "Raise a", "choices": ["the", "ValueError if the value"], "answer": 1},
    {"context": "Return True if the", "choices": ["with", "object is"], "answer": 1},
]


def test_lm_evaluation_harness(server: Server, lm: mn.LM, tmp_path: Path) -> None:
    """Its log-likelihoods are those of the Python API, and so is what it counts."""
    pytest.importorskip("lm_eval", reason="lm-eval is not installed: make test-harness")
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(one) + "\n" for one in DOCUMENTS))
    (tmp_path / "task.yaml").write_text(TASK.replace("DATA", str(data)))
    words = ["--model", "local-completions", "--tasks", "micronet_choice", "--include_path", "."]
    given = f"model=demo,base_url={server.url}/v1/completions,num_concurrent=2"
    done = subprocess.run(
        [*PYTHON, "lm_eval", *words, "--model_args", given, *SAMPLES],
        cwd=tmp_path,
        env={**ENVIRONMENT, "HF_HOME": str(tmp_path / "hf"), "HF_DATASETS_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (samples,) = tmp_path.rglob("samples_*.jsonl")
    right = 0
    for line in samples.read_text().splitlines():
        sample = json.loads(line)
        document = sample["doc"]
        expected = [told(lm, document["context"], f" {choice}") for choice in document["choices"]]
        found = [pair for (pair,) in sample["resps"]]
        for (score, is_greedy), (own_score, own_greedy) in zip(found, expected, strict=True):
            assert float(score) == pytest.approx(own_score, abs=1e-4)
            assert str(is_greedy) == str(own_greedy)
        right += expected.index(max(expected)) == document["answer"]
    (results,) = tmp_path.rglob("results_*.json")
    accuracy = json.loads(results.read_text())["results"]["micronet_choice"]["acc,none"]
    assert accuracy == pytest.approx(right / len(DOCUMENTS))


def told(lm: mn.LM, context: str, continuation: str) -> tuple[float, bool]:
    """Return a continuation's log-likelihood, and whether every word of it was the likeliest."""
    state = lm.start()
    state.feed_words(lm.encoder.tokens(context))
    total, greedy = 0.0, True
    for token in lm.encoder.tokens(context + continuation)[len(lm.encoder.tokens(context)) :]:
        greedy &= state.top_k(1, special=True)[0].word == token
        total += state.logprob(token)
        state.feed_words([token])
    return total, greedy


def test_schemathesis_finds_no_error_of_the_server(server: Server, tmp_path: Path) -> None:
    """Requests made from the OpenAPI document, right and wrong ones."""
    pytest.importorskip("schemathesis", reason="the client schemathesis is not installed")
    done = subprocess.run(
        [*PYTHON, "schemathesis.cli", "run", f"{server.url}/openapi.json", *CHECKED],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    cases = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert cases, done.stdout[-1000:]
    assert int(cases[1]) == int(cases[2]) > 300
    assert '"unexpected error"' not in server.output
