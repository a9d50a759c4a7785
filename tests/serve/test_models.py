"""Several models by name, opened anew on SIGHUP, and what a server refuses when it starts."""

import shutil
import signal
from pathlib import Path
from threading import Event

import pytest
from tests.support.engines import CACHED, INTEGERS
from tests.support.servers import serving
from tests.support.shapes import SMALL
from tests.support.waiting import wait_until, working

from micronet_lm.artifact import write_packed
from micronet_lm.artifact.random_model import random_model
from micronet_lm.cli.main import main
from micronet_lm.files import locked
from micronet_lm.runtime.places import shipped_model
from micronet_lm.serve.shelf import named_places


def test_models_by_name_and_a_file_that_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "small.safetensors"
    write_packed(path, random_model(SMALL, CACHED))
    with serving("demo", str(path), f"again={path}") as server:
        assert [m["id"] for m in server.get("/v1/models").json["data"]] == [
            "demo",
            "small",
            "again",
        ]

        def ask(text: str = "the a1") -> list[object]:
            return list(server.ask("/v1/next", text=text, model="small")["words"])

        first, session = ask(), server.ask("/v1/sessions", text="the a1", model="small")["id"]
        failures: list[int] = []
        replaced = Event()

        def load() -> None:
            while not replaced.is_set():
                reply = server.post("/v1/next", {"text": "the a1", "model": "small"})
                if reply.status != 200:
                    failures.append(reply.status)

        with working([load] * 3):
            try:
                write_packed(path, random_model(SMALL, INTEGERS))  # by rename
                server.process.send_signal(signal.SIGHUP)
                server.wait_for_log("model reopened")
                wait_until(lambda: ask() != first, "answers of the new model")
            finally:
                replaced.set()
        assert failures == []
        assert server.ask(f"/v1/sessions/{session}/ask", what="next", k=5)["words"] == first
        second = ask()

        broken = tmp_path / "broken"
        broken.write_bytes(b"not a model")
        broken.replace(path)
        server.process.send_signal(signal.SIGHUP)
        assert "small" in str(server.wait_for_log("model not reopened"))
        assert ask() == second  # the old one goes on answering
        assert server.stop() == 0


def test_names_of_models(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "mine" / "packed"
    folder.mkdir(parents=True)
    shutil.copy(shipped_model(), folder / "model.safetensors")
    shutil.copy(shipped_model(), tmp_path / "words.safetensors")
    words = ["demo", str(tmp_path / "runs" / "mine"), str(tmp_path / "words.safetensors"), "x=demo"]
    assert list(named_places(words, Path)) == ["demo", "mine", "words", "x"]
    assert named_places([], lambda: Path("demo")) == {"demo": shipped_model()}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["demo", "demo"], "two models have the name 'demo'"),
        (["nothing.safetensors"], "nothing.safetensors"),
        (["--port", "70000"], "--port must be at most 65535"),
        (["--host", "203.0.113.7"], "cannot listen at 203.0.113.7"),
        (["--api-key", "two words"], "the key must be one word"),
        (["--no-sessions-on-disk", "--sessions", "x"], "contradict each other"),
    ],
)
def test_a_server_that_cannot_start_says_why(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *([] if "--port" in words else ["--port", "0"]), *words]) in {1, 2}
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_the_key_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MICRONET_API_KEY", "two words")
    assert main(["serve", "--port", "0"]) == 2
    assert "the key must be one word" in capsys.readouterr().err


def test_two_servers_do_not_share_sessions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(tmp_path):  # as a server holds it
        assert main(["serve", "--port", "0", "--sessions", str(tmp_path)]) == 1
    assert "another server keeps its sessions" in capsys.readouterr().err
