"""Sessions: one text each, in memory or on disk, through an end and a kill of the server."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers import Reply, Server, serving
from tests.support.waiting import PATIENCE, wait_until, working

import micronet_lm as mn
from micronet_lm.serve.session_files import SessionFiles
from micronet_lm.serve.settings import default_sessions


def words(server: Server, name: str, **asked: Any) -> list[tuple[str, float]]:
    answer = server.ask(f"/v1/sessions/{name}/ask", **asked)
    return [(word["word"], word["probability"]) for word in answer["words"]]


def begin(server: Server, text: str = "") -> str:
    return str(server.ask("/v1/sessions", text=text)["id"])


def test_a_session_reads_on(server: Server, lm: mn.LM) -> None:
    name = begin(server)
    assert words(server, name, what="next", k=3) == lm.top_k("", 3)
    assert words(server, name) == lm.suggest("", 3)
    for piece in ("Return", " a n", "ew dic"):
        server.ask(f"/v1/sessions/{name}/feed", text=piece)
    assert words(server, name, what="suggest") == lm.suggest("Return a new dic", 3)
    server.ask(f"/v1/sessions/{name}/feed", text="tionary ")
    text = "Return a new dictionary"
    assert words(server, name, what="next", k=4) == lm.top_k(text, 4)
    assert words(server, name, what="complete", prefix="o") == lm.complete(text, "o", 3)
    twin = server.post(f"/v1/sessions/{name}/fork", None).json["id"]
    server.ask(f"/v1/sessions/{twin}/feed", text="of the ")
    assert words(server, name, what="next") == lm.top_k(text, 3)
    assert words(server, twin, what="next") == lm.top_k(f"{text} of the", 3)
    assert server.get(f"/v1/sessions/{twin}").json["tokens"] == 6
    assert server.send("DELETE", f"/v1/sessions/{name}", None).json["deleted"] is True
    assert server.get(f"/v1/sessions/{name}").status == 404
    assert server.get(f"/v1/sessions/{twin}").status == 200


def test_no_session_sees_anothers_text(server: Server, lm: mn.LM) -> None:
    texts = {begin(server): f"Return the {word} " for word in ("file", "list", "value", "name")}
    wrong: list[str] = []

    def use(name: str, text: str) -> None:
        for piece in (text, "of the ", "given "):
            server.ask(f"/v1/sessions/{name}/feed", text=piece)
        if words(server, name, what="next") != lm.top_k(f"{text}of the given ", 3):
            wrong.append(text)

    with working([partial(use, *item) for item in texts.items()]):
        pass
    assert wrong == []


def test_names_of_sessions_are_no_paths(server: Server) -> None:
    for name in ("..%2f..%2fetc%2fpasswd", "nothing", "a" * 22, "%00", "a" * 500):
        assert server.get(f"/v1/sessions/{name}").status in {400, 404}


def test_saved_sessions_survive_an_end_and_a_kill(tmp_path: Path, lm: mn.LM) -> None:
    folder = tmp_path / "sessions"
    with serving("demo", "--sessions", str(folder)) as server:
        name = begin(server, "Return a new")
        other = begin(server, "Raise a")
        assert server.stop() == 0  # whatever was not saved yet is saved now
        assert server.wait_for_log("sessions saved")["sessions"] == 2
    assert (folder.stat().st_mode & 0o777) == 0o700
    files = list(folder.glob("*.session"))
    assert len(files) == 2
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}

    with serving("demo", "--sessions", str(folder)) as server:
        assert words(server, name, what="next") == lm.top_k("Return a new", 3)

        def written() -> list[int]:
            return [file.stat().st_mtime_ns for file in files]

        before = written()
        server.ask(f"/v1/sessions/{name}/feed", text=" view")
        wait_until(lambda: written() != before, "a session that is idle for 2 seconds to be saved")
        assert server.send("DELETE", f"/v1/sessions/{other}", None).status == 200
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(PATIENCE)

    with serving("demo", "--sessions", str(folder)) as server:
        assert words(server, name, what="next") == lm.top_k("Return a new view", 3)
        assert server.get(f"/v1/sessions/{other}").status == 404
        assert 'where="saved"} 0' in server.get("/metrics").body.decode()


def test_damaged_and_foreign_files_are_refused_with_a_sentence(tmp_path: Path) -> None:
    name, odd = "A" * 22, "not-a-session.session"
    (tmp_path / f"{name}.session").write_bytes(b'{"micronet": "micronet session 1"}\nabc')
    (tmp_path / odd).write_bytes(b"")
    with serving("demo", "--sessions", str(tmp_path), "--max-sessions", "2") as server:
        reply = server.get(f"/v1/sessions/{name}")
        assert reply.status == 409
        assert "begin a new one" in reply.sentence
        begin(server)
        refused = server.post("/v1/sessions", {})
        assert (refused.status, refused.headers["retry-after"]) == (429, "60")
        assert "there are 2 sessions already" in refused.sentence
    assert (tmp_path / odd).exists()


def test_an_end_waits_for_requests_in_hand(tmp_path: Path) -> None:
    from websockets.sync.client import connect

    with serving("demo", "--sessions", str(tmp_path)) as server:
        name = begin(server, "Return a new")
        replies: list[Reply] = []
        body = {"prompt": "Return", "max_tokens": 1_000, "stream": True, "seed": 1}

        def ask() -> None:
            replies.append(server.post("/v1/completions", body))

        def in_hand() -> bool:
            assert not replies, "the answer came before the server could be ended"
            return "micronet_requests_in_hand 1" in server.get("/metrics").body.decode()

        with connect(server.url.replace("http", "ws") + "/v1/type") as typing:
            typing.send('{"text": "Return a"}')
            typing.recv(PATIENCE)
            with working([ask]):
                wait_until(in_hand, "the request to be in hand")
                # The open socket is closed, the stream is written to its end.
                assert server.stop() == 0
        assert replies[0].body.endswith(b"data: [DONE]\n\n")
        assert replies[0].body.count(b'"text"') > 1_000
        assert (tmp_path / f"{name}.session").exists()


def test_a_new_home_gets_a_folder_of_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    folder = default_sessions(8080)
    SessionFiles(folder)
    assert folder == tmp_path / "somebody" / ".local" / "state" / "micronet-lm" / "sessions-8080"
    assert folder.is_dir()
