"""docs/serving.md says what works: its commands are run and print what it shows."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.pages import assert_prints, console
from tests.support.servers import Server

from micronet_lm.serve.settings import default_sessions

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
COMMANDS = console(PAGE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_print_what_the_page_shows(server: Server) -> None:
    assert len(COMMANDS) >= 10
    for command, shown in COMMANDS:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.replace("http://127.0.0.1:8080", server.url)],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert done.returncode == 0, (command, done.stderr)
        assert_prints(done.stdout.rstrip("\n").splitlines(), shown)


def test_the_folder_of_sessions_is_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert f"`~/{default_sessions(8080).relative_to(tmp_path)}`" in PAGE


def test_every_path_is_on_the_page(server: Server) -> None:
    document = server.get("/openapi.json").json
    for path in document["paths"]:
        last = path.rpartition("/")[2]
        assert last == "{name}" or last in PAGE, path
